"""Code generation by numba: the loop language printed as Python, then compiled to object code."""
