"""The type of any object, under PyTensor's path."""

from engine.graph.generic import Generic, generic

__all__ = ["Generic", "generic"]
