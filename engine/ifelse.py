"""The lazy choice between branches, under PyTensor's path."""

from engine.tensor.conditional import IfElse, ifelse

__all__ = ["IfElse", "ifelse"]
