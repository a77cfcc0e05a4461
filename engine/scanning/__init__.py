"""Loops in graphs, with PyTensor's names: `scan`, and what is made of it."""

from engine.scanning.construction import scan
from engine.scanning.folds import foldl, foldr, map, reduce
from engine.scanning.step import until

__all__ = ["foldl", "foldr", "map", "reduce", "scan", "until"]
