"""User functions, compiled by numba: into kernels, or called from Python."""
