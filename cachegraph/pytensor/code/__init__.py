"""Code that numba compiled for PyTensor: stored, linked and verified."""
