"""The C entry: compiled code that runs a program when C calls it, without Python and without its lock."""
