"""Values that persist between calls, under PyTensor's path."""

from engine.link import basic

__all__ = ["basic"]
