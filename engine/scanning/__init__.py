"""Loops in graphs under PyTensor's names: `scan`, and `map`, `reduce`, `foldl` and `foldr` made of it."""

from engine.scanning.arguments import until
from engine.scanning.construction import foldl, foldr, map, reduce, scan

__all__ = ["foldl", "foldr", "map", "reduce", "scan", "until"]
