"""The runtime: a stored program is checked, loaded, linked and called. Nothing here rewrites, lowers or
compiles."""
