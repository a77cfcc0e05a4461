"""What the tests of derived graphs share: the adapter installed, a small model, and what was looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytest

import cachegraph.pytensor
from cachegraph.pytensor.making import derivations, derived_lookup
from tests.cachegraph.pytensor.entry_points import declared
from tests.cachegraph.pytensor.making.deriving_process import counts

HAS_ENGINE = tuple(map(int, pytensor.__version__.split(".")[:3])) >= (3, 3, 7)

Made = Callable[[], Any]


@contextmanager
def installed_anew(points: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The adapter with the engine, if this PyTensor is one for it, in a process that has stored nothing."""
    monkeypatch.syspath_prepend(declared(points))
    derived_lookup._stored.clear()
    # Older ones are not for the engine; numba would compile for minutes.
    with pytensor.config.change_flags(cxx="", **({} if HAS_ENGINE else {"linker": "py"})):
        cachegraph.pytensor.install(backend="engine" if HAS_ENGINE else None)
        yield
        cachegraph.pytensor.uninstall()


def looked_up(step: Made) -> tuple[Any, int, int]:
    """What `step` returns, and how many derived graphs it found and made."""
    before = counts()["op"]
    result = step()
    hits, misses = (now - then for now, then in zip(counts()["op"], before, strict=True))
    return result, hits, misses


def without_cache(step: Made) -> Any:
    derivations.unpatch()
    try:
        return step()
    finally:
        derivations.patch()


def small(observed: Any = (0.5, 1.0), sigma: float = 1.0, upper: float = 2.0) -> Any:
    with pm.Model() as model:
        mu, scale = pm.Normal("mu", 0.0, sigma), pm.Uniform("scale", 0.0, upper)
        pm.Normal("y", mu, scale, observed=np.asarray(observed))
    return model
