"""Special loops, under PyTensor's path."""

from engine.scanning.construction import foldl, foldr, map, reduce

__all__ = ["foldl", "foldr", "map", "reduce"]
