"""nutpie's functions of C come from the store: right for what they are found for, and missed for all else."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import nutpie.compile_pymc
import pytensor
import pytensor.tensor as pt
import pytest
from numba.core.compiler import Compiler

import cachegraph
import cachegraph.pytensor
from cachegraph.cache import Artifact, default_cache
from cachegraph.errors import CacheMissError
from cachegraph.numba_cache import linking
from cachegraph.pytensor import explain
from cachegraph.pytensor.nutpie import callbacks, pipeline
from tests.cachegraph.pytensor.test_damage import _delete_index, _flip, _keys, _truncate

pytestmark = pytest.mark.slow
DIM = 3
WEIGHTS = np.array([[1.0, 2.0, 3.0], [0.5, 0.25, 4.0]])
OFFSET = np.array(2, dtype="int8")


DENSITY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)


class Compiled(Exception):
    """numba was asked to compile."""


def density(name: str = "density", weights: Any = WEIGHTS, offset: Any = OFFSET) -> Any:
    """Return a density of two shared variables, with its gradient."""
    x = pt.vector("x", shape=(DIM,))
    shared = pytensor.shared(weights, shape=(None,) * np.ndim(weights)), pytensor.shared(offset)
    value = (pt.exp(x) * shared[0]).sum() * shared[1]
    return pytensor.function([x], [value, pt.grad(value, x)], mode="NUMBA", name=name)


def due(x: Any, weights: Any = WEIGHTS, offset: Any = OFFSET) -> tuple[Any, Any]:
    each = np.exp(x) * weights * offset
    return each.sum(), each.sum(axis=0)


def made(function: Any, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
    """Return nutpie's function of C around `function`, and the user data, made as nutpie makes them."""
    module: Any = nutpie.compile_pymc
    shared = {variable: os.urandom(8).hex() for variable in function.get_shared()}
    data = {key: np.array(variable.get_value(), order="C") for variable, key in shared.items()}
    for array in data.values():
        array.flags.writeable = False
    user_data = module.make_user_data(shared, data)
    raw, signature = module._make_c_logp_func(DIM, function.vm.jit_fn, user_data, list(data), data)
    own = options or {}
    compiled = numba.cfunc(signature, pipeline_class=pipeline.storing_pipeline(own), **own)(raw)
    return compiled, (user_data, data)


def called(compiled: Any, held: Any, x: Any) -> tuple[int, Any, Any]:
    value, gradient = np.full((), np.nan), np.full(DIM, np.nan)
    pointers = (array.ctypes.data for array in (x, gradient, value, held[0]))
    return DENSITY(compiled.address)(DIM, *pointers), value, gradient


def check(compiled: Any, held: Any, *data: Any) -> None:
    for x in np.random.default_rng(1).normal(size=(4, DIM)):
        status, value, gradient = called(compiled, held, x)
        expected = due(x, *data)
        assert status == 0
        np.testing.assert_allclose(value, expected[0], rtol=1e-13)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-13)
    assert called(compiled, held, np.full(DIM, np.nan))[0] == 3


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store that has the function of C around `density`."""
    directory = tmp_path_factory.mktemp("callbacks") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(directory))
        cachegraph.pytensor.install()
        function = density()
        check(*made(function))
        assert explain(function).found["numba"][1] > 0
        default_cache().flush()
        cachegraph.pytensor.uninstall()
    return directory


@pytest.fixture
def store(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a copy of that store, in a process that has linked nothing and may not compile."""
    directory = tmp_path / "cache"
    shutil.copytree(filled, directory)
    monkeypatch.setenv("CACHEGRAPH_DIR", str(directory))
    monkeypatch.setattr(linking, "_callbacks", {})
    monkeypatch.setattr(Compiler, "compile_extra", refuse)
    cachegraph.pytensor.install()
    yield directory
    cachegraph.pytensor.uninstall()


def refuse(self: Any, function: Any) -> Any:
    raise Compiled(function.__name__)


@pytest.mark.usefixtures("store")
def test_it_is_found_and_computes_what_it_did() -> None:
    function = density()
    check(*made(function))
    assert explain(function).found["numba"] == [1, 0]
    assert explain(function).seconds_saved > 0.1


@pytest.mark.usefixtures("store")
def test_other_data_and_other_lengths_of_them_are_a_hit_with_their_own_numbers() -> None:
    for rows, offset in ((2, 5), (1, -1), (40, 3), (50_000, 1)):
        weights = np.random.default_rng(rows).normal(size=(rows, DIM))
        number = np.array(offset, dtype="int8")
        compiled, held = made(density(weights=weights, offset=number))
        x = np.array([0.1, -0.2, 0.3])
        status, value, gradient = called(compiled, held, x)
        expected = due(x, weights, number)
        assert status == 0
        np.testing.assert_allclose(value, expected[0], rtol=1e-11)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-11)


@pytest.mark.usefixtures("store")
def test_data_that_do_not_fit_give_a_code() -> None:
    compiled, (user_data, data) = made(density())
    odd = {key: np.zeros((2, 7)) if array.ndim else array for key, array in data.items()}
    changed = nutpie.compile_pymc.update_user_data(user_data.copy(), odd)
    assert called(compiled, (changed, odd), np.ones(DIM))[0] == 1


@pytest.mark.usefixtures("store")
def test_a_length_that_is_not_the_models_gives_a_code() -> None:
    compiled, held = made(density())
    pointers = [array.ctypes.data for array in (held[0],) * 4]
    assert DENSITY(compiled.address)(DIM + 1, *pointers) == -1


OTHERS: dict[str, Callable[[], Any]] = {
    "another computation": lambda: _other(lambda x, w: pt.sin(x) * w),
    "another dtype of data": lambda: density(weights=WEIGHTS.astype("float32")),
    "another integer": lambda: density(offset=OFFSET.astype("int16")),
    "another number of dimensions": lambda: density(weights=WEIGHTS[0]),
}


def _other(of: Callable[..., Any]) -> Any:
    x, weights = pt.vector("x", shape=(DIM,)), pytensor.shared(WEIGHTS, shape=(None, None))
    offset = pytensor.shared(OFFSET)
    value = of(x, weights).sum() * offset
    return pytensor.function([x], [value, pt.grad(value, x)], mode="NUMBA")


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("other", OTHERS)
def test_a_miss_is_what_differs_in(other: str) -> None:
    with pytest.raises(Compiled):
        made(OTHERS[other]())


@pytest.mark.usefixtures("store")
def test_options_of_numbas_are_in_the_key() -> None:
    with pytest.raises(Compiled):
        made(density(), {"error_model": "numpy"})


@pytest.mark.usefixtures("store")
def test_another_release_of_nutpie_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "encode_package", lambda name: name.encode() + b" 0.99")
    with pytest.raises(Compiled):
        made(density())


@pytest.mark.usefixtures("store")
def test_where_nothing_may_be_compiled_a_miss_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    function = density()
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    check(*made(function))
    with pytest.raises(CacheMissError):
        made(function, {"error_model": "numpy"})


@pytest.mark.parametrize("damage", [_truncate, _flip, _delete_index])
def test_a_damaged_store_is_a_miss(store: Path, damage: Callable[[Path], None]) -> None:
    damage(store)
    with pytest.raises(Compiled):
        made(density())


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("content", [b"", b"nonsense", b"CGNB\x01", b"CGNB\x63" + bytes(40)])
def test_entries_that_hold_nonsense_are_misses(content: bytes) -> None:
    for key in _keys("numba"):
        default_cache().store(key, Artifact(content))
    with pytest.raises(Compiled):
        made(density())


@pytest.mark.usefixtures("store")
def test_an_entry_cut_short_or_of_another_signature_is_a_miss() -> None:
    cache = default_cache()
    entries = {
        key: hit.payload for key in _keys("numba") if (hit := cache.lookup(key)).payload[:4] == b"CGNB"
    }
    largest = max(entries, key=lambda key: len(entries[key]))
    for content in (entries[largest][:-100], min(entries.values(), key=len)):
        for key in entries:
            cache.store(key, Artifact(content))
        linking._callbacks.clear()
        with pytest.raises(Compiled):
            made(density())


@pytest.mark.usefixtures("store")
def test_a_failure_of_the_cache_is_logged_and_numba_compiles(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pipeline._Lookup, "_key", lambda self: 1 / 0)
    with pytest.raises(Compiled):
        made(density())
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.usefixtures("store")
def test_what_cannot_be_described_goes_numbas_way_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    function = density(offset=np.array(2.0))
    function.vm.jit_fn = numba.njit(lambda x, *shared: (1.0, x))
    with caplog.at_level(logging.INFO, "cachegraph"), pytest.raises(Compiled):
        made(function)
    assert "what it calls is not stored" in caplog.text
    assert cachegraph.counters().bypasses["without a key"] >= 1


def test_in_the_mode_verify_wrong_code_is_found_and_replaced(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("CACHEGRAPH_DIR", str(store))
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    own = pipeline.CFunctionSource.called_at
    calls: list[int] = []

    def wrong(self: Any, address: int) -> Any:
        calls.append(address)
        found = own(self, address)
        return found if len(calls) != 1 else lambda *arrays: arrays[1].fill(7.0) or found(*arrays) + 1

    monkeypatch.setattr(callbacks.CFunctionSource, "called_at", wrong)
    check(*made(density()))
    assert cachegraph.counters().misses["mismatch"] >= 1
    check(*made(density()))
    assert len(calls) == 4
    monkeypatch.setenv("CACHEGRAPH_MODE", "readwrite")
    function = density()
    compiled, held = made(function)
    check(compiled, held)
    assert explain(function).found["numba"] == [1, 0]
    assert "define" in compiled.inspect_llvm()
