"""Rewrites of sums of products, under PyTensor's path."""

from typing import Any

from engine.paths import find


def __getattr__(name: str) -> Any:
    return find(__name__, name)
