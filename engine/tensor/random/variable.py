"""Generators in graphs, under PyTensor's path."""

from typing import Any

from engine.paths import find
from engine.random.shared import RandomGeneratorSharedVariable, shared_rng
from engine.random.type import RandomGeneratorVariable, rng

__all__ = ["RandomGeneratorSharedVariable", "RandomGeneratorVariable", "rng", "shared_rng"]


def __getattr__(name: str) -> Any:
    return find(__name__, name)
