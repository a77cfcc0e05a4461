"""The type of gradients that are not defined, under PyTensor's path."""

from engine.graph.absent_gradients import NullType, null_type

__all__ = ["NullType", "null_type"]
