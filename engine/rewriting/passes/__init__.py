"""The rewrites, one subject per module."""
