"""Any value as a variable, under PyTensor's path."""

from engine.tensor.slice_type import as_symbolic

__all__ = ["as_symbolic"]
