"""Claims: one builder for each key, among processes and hosts."""
