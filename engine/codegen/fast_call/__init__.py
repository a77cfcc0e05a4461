"""The fast call: compiled code that runs a program when Python calls a function."""
