"""The store of one machine: an index in SQLite, and files for large content."""
