"""Values that persist between calls, under PyTensor's path."""

from engine.shared_variables import Container

__all__ = ["Container"]
