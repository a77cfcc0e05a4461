"""Mutable and frozen graphs, under PyTensor's path."""

from engine.errors import MissingInputError
from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph, Output

__all__ = ["FrozenFunctionGraph", "FunctionGraph", "MissingInputError", "Output"]
