"""Special loops, under PyTensor's path."""

from engine.scanning.construction import filter, foldl, foldr, map, reduce

__all__ = ["filter", "foldl", "foldr", "map", "reduce"]
