"""The key of a PyTensor function: its graph, and everything that its rewrites and its code read."""
