"""A graph compiler with PyTensor's public names, on top of a persistent cache of what it compiles."""
