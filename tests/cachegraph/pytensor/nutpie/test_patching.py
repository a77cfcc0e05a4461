"""nutpie is patched with the adapter, if it is the nutpie that is known, and restored with it."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nutpie.compile_pymc
import pytest

import cachegraph.pytensor
import cachegraph.pytensor.nutpie
from cachegraph.pytensor.nutpie.patching import NUTPIE
from tests.cachegraph.pytensor.entry_points import declared, needs_engine

NAMES = ("_compile_pymc_model_numba", "_make_c_logp_func", "_make_c_expand_func")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    cachegraph.pytensor.nutpie.unpatch()


def found() -> list[Any]:
    return [getattr(nutpie.compile_pymc, name) for name in NAMES]


def test_the_adapter_patches_and_restores_it() -> None:
    before = found()
    cachegraph.pytensor.install()
    try:
        replaced = found()
        cachegraph.pytensor.install()
        assert found() == replaced
    finally:
        cachegraph.pytensor.uninstall()
    assert found() == before
    assert all(one is not other for one, other in zip(replaced, before, strict=True))


@needs_engine
def test_the_engines_backend_lies_over_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(declared(tmp_path))
    before = found()
    try:
        cachegraph.pytensor.install(backend="engine")
        over = nutpie.compile_pymc._compile_pymc_model_numba
        cachegraph.pytensor.install(backend="numba")
        assert over._own is nutpie.compile_pymc._compile_pymc_model_numba
        assert over._own is not before[0]
    finally:
        cachegraph.pytensor.uninstall()
    assert found() == before


@pytest.mark.parametrize("name", [*NAMES, "make_extraction_fn"])
def test_a_nutpie_that_is_not_known_stays_as_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nutpie.compile_pymc, name, lambda model: None)
    before = found()
    with caplog.at_level(logging.WARNING, "cachegraph"):
        cachegraph.pytensor.nutpie.patch()
    assert found() == before
    assert f"{name} is not as in 0.16" in caplog.text


def test_a_nutpie_that_others_have_changed_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def make_extraction_fn(inner: Any, shared_data: Any, shared_var_keys: Any, record_dtype: Any) -> Any:
        return None

    monkeypatch.setattr(nutpie.compile_pymc, "make_extraction_fn", make_extraction_fn)
    before = found()
    with caplog.at_level(logging.INFO, "cachegraph"):
        cachegraph.pytensor.nutpie.patch()
    assert found() == before
    assert f"{__name__} has replaced make_extraction_fn" in caplog.text


@pytest.mark.parametrize("given", ["cache", "pipeline_class"])
def test_options_that_say_where_code_comes_from_are_obeyed(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = nutpie.compile_pymc._compile_pymc_model_numba

    def compiled(model: Any, pymc_initial_point_fn: Any, var_names: Any = None, **kwargs: Any) -> Any:
        return kwargs

    compiled.__module__ = own.__module__
    monkeypatch.setattr(nutpie.compile_pymc, "_compile_pymc_model_numba", compiled)
    cachegraph.pytensor.nutpie.patch()
    patched = nutpie.compile_pymc._compile_pymc_model_numba
    assert patched(model=1, pymc_initial_point_fn=2, var_names=None, **{given: 3}) == {given: 3}
    assert patched(1, 2, fastmath=True).keys() == {"fastmath", "pipeline_class"}
    cachegraph.pytensor.nutpie.unpatch()


LATE = f"""
import sys
import cachegraph.pytensor.nutpie as ours
ours.patch()
assert not {{"nutpie", "numba", "pytensor.compile"}} & set(sys.modules)
import nutpie
assert hasattr(sys.modules[{NUTPIE!r}]._make_c_logp_func, "__wrapped__")
ours.unpatch()
assert not hasattr(sys.modules[{NUTPIE!r}]._make_c_logp_func, "__wrapped__")
"""


@pytest.mark.slow
def test_a_nutpie_that_is_imported_later_is_patched_then() -> None:
    subprocess.run([sys.executable, "-c", LATE], check=True, timeout=300)
