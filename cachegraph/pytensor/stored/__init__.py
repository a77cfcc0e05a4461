"""PyTensor's graphs as the store keeps them."""
