"""Mutable and frozen graphs, under PyTensor's path."""

from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph, Output

__all__ = ["FrozenFunctionGraph", "FunctionGraph", "Output"]
