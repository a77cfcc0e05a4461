"""Shared variables, under PyTensor's path."""

from engine.shared_variables import SharedVariable, shared

__all__ = ["SharedVariable", "shared"]
