"""Claims on keys, so that one process builds: a file lock on a node, a lease among hosts."""
