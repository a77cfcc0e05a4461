"""How a function of PyTensor came about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cachegraph.caching.outcome import CacheInfo


def explain(function: Any) -> CacheInfo:
    """Return how a compiled function of PyTensor came about: its outcome, why, and the seconds that took and saved.

    Its code is looked up for the types that it is called with, when it first is: `found` has [hits, misses] of the level
    "numba" from then on, and `seconds_saved` what they saved. Raises TypeError for what is no compiled function.
    """
    maker = getattr(function, "maker", None)
    if maker is None:
        raise TypeError(
            f"explaining {function!r}: a {type(function).__qualname__} is no compiled function of PyTensor"
        )
    info: CacheInfo | None = getattr(maker, "cache_info", None)
    if info is None:
        return CacheInfo("bypass", "it was made while the adapter was not installed")
    code = getattr(function.vm, "jit_fn", None)
    hits, misses = getattr(code, "tally", (0, 0))
    found = {**info.found, **({"numba": [hits, misses]} if hits or misses else {})}
    saved = info.seconds_saved + getattr(code, "seconds_saved", 0.0)
    return replace(info, found=found, seconds_saved=saved, compilations=misses)
