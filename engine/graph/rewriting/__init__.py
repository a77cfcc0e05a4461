"""Rewriting, under PyTensor's path."""

from engine.rewriting.pipeline import rewrite_graph

__all__ = ["rewrite_graph"]
