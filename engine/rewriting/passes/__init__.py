"""The rewrites, one subject a module."""
