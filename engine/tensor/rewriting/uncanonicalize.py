"""Rewrites that end a canonical form, under PyTensor's path."""

from typing import Any

from engine.paths import find


def __getattr__(name: str) -> Any:
    return find(__name__, name)
