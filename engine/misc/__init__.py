"""PyTensor's path of what serves its tests and its users' scripts."""
