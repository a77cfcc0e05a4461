"""nutpie and PyMC are patched by `patch` alone, and restored by `unpatch`."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import nutpie.compile_pymc
import pymc.sampling.mcmc
import pytest

import cachegraph.pytensor
import engine.pytensor.nutpie
from engine.pytensor.linker import EngineLinker
from engine.pytensor.nutpie.patching import NUTPIE
from tests.cachegraph.pytensor.entry_points import declared

PLACES: tuple[tuple[ModuleType, str], ...] = (
    (nutpie.compile_pymc, "_compile_pymc_model_numba"),
    (pymc.sampling.mcmc, "NumbaLinker"),
)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    engine.pytensor.nutpie.unpatch()


def found() -> list[Any]:
    return [getattr(module, name) for module, name in PLACES]


def test_unpatching_restores_what_was_there() -> None:
    before = found()
    engine.pytensor.nutpie.patch()
    engine.pytensor.nutpie.patch()
    assert all(one is not other for one, other in zip(found(), before, strict=True))
    assert isinstance(EngineLinker(), pymc.sampling.mcmc.NumbaLinker)
    engine.pytensor.nutpie.unpatch()
    assert all(one is other for one, other in zip(found(), before, strict=True))


def test_the_backend_brings_it_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(declared(tmp_path))
    before = found()
    try:
        cachegraph.pytensor.install(backend="engine")
        assert all(one is not other for one, other in zip(found(), before, strict=True))
        ours = found()
        cachegraph.pytensor.install(backend="numba")
        assert found()[1] is before[1]
        assert found()[0] is ours[0]._own
        cachegraph.pytensor.install(backend="engine")
    finally:
        cachegraph.pytensor.uninstall()
    assert all(one is other for one, other in zip(found(), before, strict=True))


def test_a_nutpie_that_is_not_known_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nutpie.compile_pymc, "make_user_data", lambda keys: None)
    before = found()
    with caplog.at_level(logging.WARNING, "engine"):
        engine.pytensor.nutpie.patch()
    assert found()[0] is before[0]
    assert "make_user_data" in caplog.text


LATE = f"""
import sys
import engine.pytensor.nutpie as own
own.patch()
assert not {{"nutpie", "pymc", "pytensor"}} & set(sys.modules)
import nutpie
patched = sys.modules[{NUTPIE!r}]._compile_pymc_model_numba
assert type(patched).__name__ == "ModelCompiler", patched
own.unpatch()
assert sys.modules[{NUTPIE!r}]._compile_pymc_model_numba is patched._own
assert not any(type(finder).__name__ == "ImportWatcher" for finder in sys.meta_path)
"""


@pytest.mark.slow
def test_a_module_that_is_imported_later_is_patched_then() -> None:
    subprocess.run([sys.executable, "-c", LATE], check=True, timeout=300)
