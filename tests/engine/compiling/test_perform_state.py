"""State of `perform`: its content is in no key where only `perform` reaches it, and in the key elsewhere."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.key import encode_graph
from engine.graph import Apply, FrozenFunctionGraph, Op
from engine.graph.op import as_type

MEMO: dict[float, float] = {}
TABLE = {1.0: 10.0}
CALLS: Counter[str] = Counter()
LAST: deque[float] = deque(maxlen=3)
STATE: list[Any] = [MEMO]
taken_by_name = attrgetter("perform")


def square(value: float) -> float:
    if value not in MEMO:
        MEMO[value] = value * value
    return MEMO[value]


def other_square(x: Any) -> Any:
    CALLS["square"] += 1
    LAST.append(x.size)
    return x * x


def remembered_square(x: Any) -> Any:
    return np.array([square(float(value)) for value in x])


class Remembers(Op):
    """The square of a number."""

    __props__ = ()
    itypes = (pt.dscalar,)
    otypes = (pt.dscalar,)

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = np.asarray(square(float(inputs[0])))

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        return [Remembers()(inputs[0]) * cotangents[0]]


class Remembers2(Remembers):
    def make_node(self, x: Any) -> Apply:
        return Apply(self, [pt.as_tensor_variable(x)], [pt.dscalar()])

    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        return [()]


class Sees(Remembers):
    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        return [() for _ in MEMO] or [()]


class SeesByHelper(Remembers):
    def make_node(self, x: Any) -> Apply:
        square(1.0)
        return Apply(self, [x], [pt.dscalar()])


class SeesByAttribute(Remembers):
    memo = MEMO


class SeesInAContainer(Remembers):
    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        return [()] if STATE else []


class Runs(Remembers):
    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        self.perform(node, [np.ones(())], [[None]])
        return [()]


class RunsByAnotherName(Remembers):
    compute = Remembers.perform

    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        self.compute(node, [np.ones(())], [[None]])
        return [()]


class RunsByAComputedName(Remembers):
    def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
        getattr(self, "".join(("per", "form")))(node, [np.ones(())], [[None]])
        return [()]


class RunsByAGetter(Remembers):
    def make_node(self, x: Any) -> Apply:
        taken_by_name(self)
        return Apply(self, [x], [pt.dscalar()])


class RunsByTheEngine(Remembers):
    def make_node(self, x: Any) -> Apply:
        engine.function([], Remembers()(pt.constant(3.0)))()
        return Apply(self, [x], [pt.dscalar()])


class Reads(Remembers):
    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = np.asarray(TABLE[1.0])


def key(op: Op) -> bytes:
    inputs = [as_type(item).make_variable() for item in op.itypes or ()]
    return encode_graph(FrozenFunctionGraph.from_io(inputs, [op(*inputs)]))


@pytest.fixture(autouse=True)
def empty_memo() -> None:
    MEMO.clear()
    CALLS.clear()
    LAST.clear()


def changes_the_key(op: Op, change: Callable[[], object]) -> bool:
    before = key(op)
    change()
    return key(op) != before


def fill() -> None:
    MEMO[5.0] = 25.0
    CALLS["square"] += 1
    LAST.append(1.0)


@pytest.mark.parametrize("op", [Remembers(), Remembers2()], ids=str)
def test_a_memo_that_only_perform_reaches_is_in_no_key(op: Op) -> None:
    assert not changes_the_key(op, fill)


def test_the_memo_of_a_function_made_an_op_is_in_no_key() -> None:
    for function in (other_square, remembered_square):
        assert not changes_the_key(engine.wrap_py([pt.dvector], [pt.dvector])(function), fill)


def test_the_memo_of_a_function_is_in_the_key_where_another_method_calls_the_function() -> None:
    def shapes(node: Any, input_shapes: Any) -> Any:
        remembered_square(np.ones(2))
        return input_shapes

    def shapes_by_the_op(node: Any, input_shapes: Any) -> Any:
        op.fn(np.ones(2))
        return input_shapes

    for infer_shape in (shapes, shapes_by_the_op):
        op = engine.wrap_py([pt.dvector], [pt.dvector], infer_shape)(remembered_square)
        MEMO.clear()
        assert changes_the_key(op, fill)


@pytest.mark.parametrize(
    "op",
    [
        Sees(),
        SeesByHelper(),
        SeesByAttribute(),
        SeesInAContainer(),
        Runs(),
        RunsByAnotherName(),
        RunsByAComputedName(),
        RunsByAGetter(),
    ],
    ids=str,
)
def test_a_memo_that_other_code_may_see_is_in_the_key(op: Op) -> None:
    assert changes_the_key(op, fill)


def test_a_memo_is_in_the_key_where_other_code_compiles_functions() -> None:
    assert changes_the_key(RunsByTheEngine(), fill)


def test_a_table_that_perform_only_reads_is_in_the_key() -> None:
    assert changes_the_key(Reads(), lambda: TABLE.update({1.0: TABLE[1.0] + 1}))


def module_of(name: str) -> ModuleType:
    """Return a module with an Op whose code is the same in all such modules."""
    module = sys.modules[name] = ModuleType(name)
    source = """
import engine.tensor as pt
from engine.graph import Op

COUNT = [0]

class Counts(Op):
    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node, inputs, output_storage):
        COUNT[0] += 1
        output_storage[0][0] = inputs[0] * COUNT[0]
"""
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def test_ops_that_differ_in_their_memos_alone_are_not_taken_for_each_other() -> None:
    one, other = module_of("counting_one"), module_of("counting_other")
    other.COUNT[0] = 10
    x = pt.vector("x")
    both = engine.function([x], [one.Counts()(x), other.Counts()(x)])
    assert [found.tolist() for found in both(np.ones(1))] == [[1.0], [11.0]]
    assert both.cache_info.outcome == "bypass"
    assert "containers that its perform fills" in both.cache_info.reason
