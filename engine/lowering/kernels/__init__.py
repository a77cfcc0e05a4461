"""The families of kernels: each module describes computations of one kind in the loop language."""
