"""Code generation: from kernels and user functions to object code."""
