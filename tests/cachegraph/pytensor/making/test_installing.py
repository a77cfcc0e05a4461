"""The adapter installed into PyTensor and uninstalled."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import Mode

import cachegraph.pytensor
from cachegraph.garbage import SELDOM
from cachegraph.pytensor import UnsupportedPyTensor
from cachegraph.pytensor.making import installing
from cachegraph.pytensor.making.maker import CachedMaker
from tests.cachegraph.pytensor.hooks import hooked


@pytest.fixture(autouse=True)
def uninstalled() -> Iterator[None]:
    yield
    cachegraph.pytensor.uninstall()


def _made() -> Any:
    x = pt.vector("x")
    return pytensor.function([x], x * 2, mode=Mode("numba", None))


def test_uninstalling_gives_back_the_very_objects_that_were_there() -> None:
    before = hooked()
    cachegraph.pytensor.install()
    installed = hooked()
    assert all(installed[place] is not before[place] for place in before)
    cachegraph.pytensor.uninstall()
    after = hooked()
    assert all(after[place] is before[place] for place in before)


def test_installing_twice_is_installing_once() -> None:
    before = hooked()
    cachegraph.pytensor.install()
    once = hooked()
    cachegraph.pytensor.install()
    assert all(hooked()[place] is once[place] for place in once)
    cachegraph.pytensor.uninstall()
    assert all(hooked()[place] is before[place] for place in before)
    cachegraph.pytensor.uninstall()
    assert all(hooked()[place] is before[place] for place in before)


def test_garbage_is_collected_seldom_while_modules_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    meanwhile: list[tuple[int, int, int]] = []
    monkeypatch.setattr(installing, "_hook", lambda: meanwhile.append(gc.get_threshold()))
    cachegraph.pytensor.install()
    assert meanwhile == [SELDOM]
    assert gc.get_threshold() == before


def test_functions_made_before_and_in_between_keep_working() -> None:
    before = _made()
    cachegraph.pytensor.install()
    between = _made()
    assert type(before.maker) is FunctionMaker
    assert type(between.maker) is CachedMaker
    cachegraph.pytensor.uninstall()
    for function in (before, between, between.copy()):
        assert function(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert type(_made().maker) is FunctionMaker
    assert cachegraph.pytensor.explain(before).reason == "it was made while the adapter was not installed"


def test_modes_with_makers_of_their_own_keep_them() -> None:
    from pytensor.compile.debug.debugmode import DebugMode

    cachegraph.pytensor.install()
    assert not issubclass(DebugMode(check_c_code=False).function_maker, CachedMaker)


@pytest.mark.parametrize("version", ["3.2.9", "3.4.0", "4.0.0", "2.31.0"])
def test_another_minor_version_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    before = hooked()
    monkeypatch.setattr(pytensor, "__version__", version)
    with pytest.raises(UnsupportedPyTensor, match="install") as refused:
        cachegraph.pytensor.install()
    assert refused.value.found == f"PyTensor {version}"
    assert refused.value.expected == "PyTensor 3.3.x"
    assert "force=True" in refused.value.advice
    assert all(hooked()[place] is before[place] for place in before)


def test_another_version_is_taken_when_it_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytensor, "__version__", "3.4.0")
    cachegraph.pytensor.install(force=True)
    assert Mode("numba", None).function_maker is CachedMaker


def test_a_maker_with_another_signature_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(self: Any, input_storage: Any = None, storage_map: Any = None, more: Any = None) -> None:
        """A later PyTensor's signature."""

    monkeypatch.setattr(FunctionMaker, "create", create)
    with pytest.raises(
        UnsupportedPyTensor, match=r"FunctionMaker.create\(self input_storage storage_map more\)"
    ):
        cachegraph.pytensor.install()


def test_a_hook_that_somebody_wraps_and_says_so_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    create = FunctionMaker.create

    @functools.wraps(create)
    def profiled(*args: Any, **options: Any) -> Any:
        return create(*args, **options)

    monkeypatch.setattr(FunctionMaker, "create", profiled)
    cachegraph.pytensor.install()
    assert _made()(np.ones(1)) == [2.0]


class Tracer:
    def __init__(self, traced: Any) -> None:
        self.traced = traced

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.traced(*args, **options)


def test_what_wraps_a_hook_and_does_not_say_so_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    create = FunctionMaker.create

    def profiled(*args: Any, **options: Any) -> Any:
        return create(*args, **options)

    for wrapper, name in ((profiled, "profiled"), (Tracer(create), "Tracer")):
        monkeypatch.setattr(FunctionMaker, "create", wrapper)
        with pytest.raises(UnsupportedPyTensor) as refused:
            cachegraph.pytensor.install()
        for part in ("FunctionMaker.create(args options)", f"{__name__}.", name, __file__):
            assert part in refused.value.found
        assert "functools.wraps" in refused.value.advice


def test_a_hook_that_is_gone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Mode, "function_maker")
    with pytest.raises(UnsupportedPyTensor, match="a NoneType"):
        cachegraph.pytensor.install()


def test_explaining_needs_a_function() -> None:
    with pytest.raises(TypeError, match="a int is no compiled function"):
        cachegraph.pytensor.explain(3)
