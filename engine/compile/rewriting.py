"""Rewrites of graphs within Ops, under PyTensor's path."""

from engine.rewriting.inner_graphs import inline_ofg_expansion

__all__ = ["inline_ofg_expansion"]
