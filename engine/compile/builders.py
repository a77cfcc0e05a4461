"""Ops that hold a graph, under PyTensor's path."""

from engine.inner.from_graph import OpFromGraph, SymbolicOp

__all__ = ["OpFromGraph", "SymbolicOp"]
