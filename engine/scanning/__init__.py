"""Loops in graphs, with PyTensor's names: `scan`, and what is made of it."""

from engine.scanning.arguments import until
from engine.scanning.construction import foldl, foldr, map, reduce, scan

__all__ = ["foldl", "foldr", "map", "reduce", "scan", "until"]
