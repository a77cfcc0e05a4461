"""Claims on keys, so that one process builds: a file lock on one node, a lease among hosts that share a directory."""
