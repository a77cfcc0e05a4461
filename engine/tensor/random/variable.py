"""Generators in graphs, under PyTensor's path."""

from engine.random.shared import RandomGeneratorSharedVariable, shared_rng
from engine.random.type import RandomGeneratorVariable, rng

__all__ = ["RandomGeneratorSharedVariable", "RandomGeneratorVariable", "rng", "shared_rng"]
