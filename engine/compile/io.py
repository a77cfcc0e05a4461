"""The arguments of functions, under PyTensor's path."""

from engine.compiling.arguments import In, Out

__all__ = ["In", "Out"]
