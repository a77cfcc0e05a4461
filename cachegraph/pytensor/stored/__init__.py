"""Optimized graphs of PyTensor in the form in which entries hold them."""
