"""Products with logarithms that are 0 where the first factor is, under PyTensor's path."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.inner.special import xlogx
    from engine.inner.special import xlogy as xlogy0

__all__ = ["xlogx", "xlogy0"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("engine.inner.special"), "xlogy" if name == "xlogy0" else name)
