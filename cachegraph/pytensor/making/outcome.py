"""How a function came about: why it does without the cache, and what `explain` tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytensor.compile.mode import Mode
from pytensor.configdefaults import config
from pytensor.link.numba.linker import NumbaLinker

from cachegraph.caching.outcome import CacheInfo
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.backends import backend_of
from cachegraph.pytensor.code.compilations import Compilations

_NOT_YET = Compilations()


class Bypass(NamedTuple):
    """A reason to do without the cache: the `kind` that is counted, and a `reason` for people."""

    kind: str
    reason: str


def bypass_of(mode: Any, fgraph: Any, no_fgraph_prep: bool, profile: Any) -> Bypass | None:
    """Return why these arguments of PyTensor's maker bypass the cache, or None if they do not."""
    if fgraph is not None or no_fgraph_prep:
        return Bypass("given-graph", "its graph was given, and is linked as it is")
    if type(mode) is not Mode:
        return Bypass("mode", f"the mode is a {type(mode).__qualname__}")
    if type(mode.linker) is not NumbaLinker and backend_of(mode.linker) is None:
        return Bypass("linker", f"the linker is a {type(mode.linker).__qualname__}, not numba's")
    if profile or config.profile_optimizer:
        return Bypass("profile", "it is profiled")
    return None


def explain(function: Any) -> CacheInfo:
    """Return how a compiled function of PyTensor came about: its outcome, the reason, the seconds spent and
    saved.

    Its code is looked up at the first call with arguments of given types: from then on `found` has [hits,
    misses] of the level "numba", `seconds` has what compiling it took, as a step and in the total, and
    `seconds_saved` includes the code. Raises TypeError for anything but a
    compiled function.
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
    compiled: Compilations = getattr(code, "compilations", _NOT_YET)
    seconds = _with_calls(info.seconds, compiled)
    return info.replace(found=found, seconds=seconds, seconds_saved=saved, compilations=compiled.count)


def _with_calls(seconds: Mapping[str, float], compiled: Compilations) -> dict[str, float]:
    """Return the seconds of each step, with what was compiled at calls."""
    if not compiled.count:
        return dict(seconds)
    total = seconds.get("total", 0.0) + compiled.seconds
    return {**seconds, "compile": compiled.seconds, "total": total}
