"""The store: one cache directory, its index (SQLite) and its blobs (files)."""
