"""The adapter for PyTensor: every `pytensor.function` in numba mode, PyMC's included, goes through the cache."""
