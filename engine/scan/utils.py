"""The end of a loop by a condition, under PyTensor's path."""

from engine.scanning.arguments import until

__all__ = ["until"]
