"""The compiler of kernels: the loop language printed as Python, compiled by numba's own pipeline to object code."""
