"""Shared variables that hold arrays, under PyTensor's path."""

from engine.shared_variables import SharedVariable, TensorSharedVariable

__all__ = ["SharedVariable", "TensorSharedVariable"]
