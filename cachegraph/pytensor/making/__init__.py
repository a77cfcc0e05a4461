"""The hooks put into PyTensor, and the maker that looks functions up in the cache."""
