"""The description of what PyTensor compiles: cache keys, and explanations of misses."""
