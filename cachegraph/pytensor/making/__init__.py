"""Hooks into PyTensor, and the maker that looks functions up."""
