"""From an optimized graph to a program and the kernels that it calls, in the loop language."""
