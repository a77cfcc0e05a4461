"""The families of kernels: each module turns a description of a computation into a `Kernel` of the loop language."""
