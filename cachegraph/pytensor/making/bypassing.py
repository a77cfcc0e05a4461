"""Which functions are left to PyTensor's own maker, whatever they compute."""

from __future__ import annotations

from typing import Any, NamedTuple

from pytensor.compile.mode import Mode
from pytensor.configdefaults import config
from pytensor.link.numba.linker import NumbaLinker


class Bypass(NamedTuple):
    """Why a function does without the cache: the `kind` that is counted, and a `reason` for people."""

    kind: str
    reason: str


def bypass_of(mode: Any, fgraph: Any, no_fgraph_prep: bool, profile: Any) -> Bypass | None:
    """Why these arguments of PyTensor's maker bypass the cache, or None."""
    if fgraph is not None or no_fgraph_prep:
        return Bypass("given-graph", "its graph was given, and is linked as it is")
    if type(mode) is not Mode:
        return Bypass("mode", f"the mode is a {type(mode).__qualname__}")
    if type(mode.linker) is not NumbaLinker:
        return Bypass("linker", f"the linker is a {type(mode.linker).__qualname__}, not numba's")
    if profile or config.profile_optimizer:
        return Bypass("profile", "it is profiled")
    return None
