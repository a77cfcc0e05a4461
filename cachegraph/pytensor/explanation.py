"""How a function of PyTensor came about."""

from __future__ import annotations

from typing import Any

from cachegraph.cache_info import CacheInfo


def explain(function: Any) -> CacheInfo:
    """Return how a compiled function of PyTensor came about: its outcome, why, and the seconds that took and saved.

    Raises TypeError for what is no compiled function.
    """
    maker = getattr(function, "maker", None)
    if maker is None:
        raise TypeError(
            f"explaining {function!r}: a {type(function).__qualname__} is no compiled function of PyTensor"
        )
    info = getattr(maker, "cache_info", None)
    return (
        info if info is not None else CacheInfo("bypass", "it was made while the adapter was not installed")
    )
