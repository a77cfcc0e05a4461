"""Of what others registered with PyTensor, a key has exactly what the code in hand can reach."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.graph.type import Type
from pytensor.link.numba.dispatch.basic import numba_funcify, numba_funcify_default_op_cache_key
from pytensor.tensor import _as_tensor_variable
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.extra_ops import CumOp

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.code.op_code import storing_op_code
from cachegraph.pytensor.describe.basis import _registry_of
from cachegraph.pytensor.describe.graphs import encode_frozen
from cachegraph.pytensor.describe.values import EncodingContext, encode_value
from tests.cachegraph.pytensor.describing import key_of, registered_rewrite

ROOT = Path(__file__).parents[3]
OPS = 2
x = pt.vector("x")


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.cachegraph.pytensor.reaching_process", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ}, stdout=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.slow
def test_imports_change_no_key_of_an_ops_code_and_another_implementation_does() -> None:
    """PyMC registers conversions of pandas' frames, `pytensor.xtensor` rewrites: neither concerns the Ops."""
    first = finished(started())
    assert (first["hits"], first["result"]) == (0, pytest.approx([math.e, math.e**2]))
    others = [started("pymc"), started("pytensor.xtensor")]
    assert [(found["hits"], found["result"]) for found in map(finished, others)] == [
        (OPS, first["result"])
    ] * 2
    registered = finished(started("3.0", "pymc"))
    assert registered["result"] == pytest.approx([math.exp(3), math.exp(3)])
    assert registered["misses"] > first["misses"] - OPS


class Frame:
    """A class of a package that neither PyTensor nor PyMC knows."""


class Own(Op):
    """A user Op."""

    __props__ = ()

    def make_node(self, value: Any) -> Apply:
        return Apply(self, [value], [value.type()])

    def perform(self, node: Any, inputs: Any, storage: Any) -> None:
        storage[0][0] = inputs[0]


class Held(Type):
    """A user Type."""

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        return data


@pytest.fixture
def register() -> Iterator[Callable[[Any, Any, Any], None]]:
    """Register something in a table of PyTensor's, for one test."""
    undone: list[Callable[[], None]] = []

    def do(table: Any, cls: Any, function: Any) -> None:
        rows = dict(_registry_of(table))
        undone.append(lambda: put_back(table, rows))
        table.register(cls)(function)

    yield do
    for undo in reversed(undone):
        undo()


def put_back(table: Any, rows: dict[Any, Any]) -> None:
    registry = _registry_of(table)
    registry.clear()
    registry.update(rows)
    table._clear_cache()


def of_a_frame(frame: Any, **kwargs: Any) -> Any:
    return pt.constant(1.0)


def rewrite_of_own(fgraph: Any, node: Any) -> Any:
    return None


def graphs_of_others() -> dict[str, Any]:
    """Yield graphs that contain something of a user's, by what that is."""
    held = CumOp(axis=0, mode="add")
    held.held = Frame
    return {
        "an Op": Own()(x),
        "an Op within an Op": OpFromGraph([x], [Own()(x)])(x),
        "a Type": Elemwise(pt.exp.scalar_op)(x) + pt.as_tensor(x) * 0 + Shaped()(Held()("held")),
        "a class that an Op of PyTensor's holds": held(x),
    }


class Shaped(CumOp):
    """An Op that takes anything."""

    def __init__(self) -> None:
        super().__init__(axis=0, mode="add")

    def make_node(self, value: Any) -> Apply:
        return Apply(self, [value], [pt.vector().type()])


def test_what_is_registered_for_a_class_of_others_is_in_the_keys_of_what_has_code_by_others(
    register: Any,
) -> None:
    plain = [key_of([x], pt.exp(x)), key_of([x], OpFromGraph([x], [pt.exp(x)])(x))]
    before = {name: keys_of(graph) for name, graph in graphs_of_others().items()}
    register(_as_tensor_variable, Frame, of_a_frame)
    assert [key_of([x], pt.exp(x)), key_of([x], OpFromGraph([x], [pt.exp(x)])(x))] == plain
    for name, graph in graphs_of_others().items():
        for key, another in zip(before[name], keys_of(graph), strict=True):
            assert key != another, name


def keys_of(graph: Any) -> list[str]:
    """Return the key of a graph, made twice: the second time from cached encodings."""
    inputs = [v for v in ancestors_of(graph) if v.owner is None and not isinstance(v, Constant)]
    return [key_of(inputs, graph), key_of(inputs, graph)]


def ancestors_of(graph: Any) -> list[Any]:
    from pytensor.graph.traversal import ancestors

    return list(dict.fromkeys(ancestors([graph])))


def test_what_is_registered_for_a_class_of_others_is_in_all_keys_where_a_rewrite_by_others_is(
    register: Any,
) -> None:
    with registered_rewrite("of a user", in2out(node_rewriter([Elemwise])(rewrite_of_own))):
        keys = [key_of([x], pt.exp(x)), key_of([x], pt.exp(x))]
        register(_as_tensor_variable, Frame, of_a_frame)
        assert keys[0] == keys[1]
        assert key_of([x], pt.exp(x)) not in keys


def test_what_is_registered_for_a_class_of_others_is_in_all_keys_where_an_implementation_by_others_is(
    register: Any,
) -> None:
    register(numba_funcify_default_op_cache_key, CumOp, of_a_frame)
    before = key_of([x], pt.exp(x))
    register(_as_tensor_variable, Frame, of_a_frame)
    assert key_of([x], pt.exp(x)) != before


def test_what_is_registered_for_an_op_of_pytensors_or_an_abstract_class_is_in_every_key(
    register: Any,
) -> None:
    from abc import ABC

    class Any_(ABC):  # noqa: B024
        @classmethod
        def __subclasshook__(cls, other: type) -> bool:
            return True

    keys = [key_of([x], pt.exp(x))]
    for table, cls in ((numba_funcify, CumOp), (_as_tensor_variable, Any_)):
        register(table, cls, of_a_frame)
        keys.append(key_of([x], pt.exp(x)))
    assert len(set(keys)) == 3


def key_of_code(op: Any) -> str:
    """Return the completed key of the code that numba compiles for `op` alone."""
    from pytensor.link.numba.dispatch import basic

    with storing_op_code():
        _, key = basic.numba_funcify_and_cache_key(op, node=op(x).owner)
    assert key.startswith("cachegraph:")
    return str(key)


def test_what_is_registered_for_a_class_of_others_is_in_the_key_of_the_code_of_an_op_that_holds_one(
    register: Any,
) -> None:
    plain, holding = CumOp(axis=0, mode="add"), CumOp(axis=0, mode="mul")
    holding.held = Frame
    ops = plain, OpFromGraph([x], [plain(x)]), holding, OpFromGraph([x], [holding(x)])
    before = [key_of_code(op) for op in ops]
    register(_as_tensor_variable, Frame, of_a_frame)
    after = [key_of_code(op) for op in ops]
    assert [key == another for key, another in zip(before, after, strict=True)] == [True, True, False, False]
    assert [key_of_code(op) for op in ops] == after


@dataclass
class Calling:
    """An Op that calls a user's function."""

    factor: float

    def __call__(self, value: Any) -> Any:
        return value * self.factor


def test_an_instance_of_a_users_class_is_code_by_others_whatever_name_it_takes() -> None:
    import numpy as np

    for made, is_foreign in ((np.linalg.norm, False), (Calling(2.0), True), (renamed(Calling(2.0)), True)):
        context = EncodingContext((), encode_frozen)
        with suppress(Unfingerprintable):
            encode_value(made, context)
        assert bool(context.foreign) == is_foreign


def renamed(calling: Any) -> Any:
    """Copy the names of a function, as functools.wraps does."""
    calling.__module__ = "numpy"
    return calling
