"""The class of types, under PyTensor's path."""

from engine.graph.types import Type

__all__ = ["Type"]
