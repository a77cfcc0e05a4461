"""What is in the key of a function and what is not."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import engine
import engine.tensor as pt
from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.source import source_digest
from cachegraph.key import CacheKey
from engine.compiling.graph_encoding import UserOps, check_ops
from engine.compiling.key import encode_graph, function_key
from engine.compiling.request import data_constants
from engine.compiling.surroundings import engine_code, kernel_code
from engine.errors import UndescribedOpError
from engine.graph import Apply, FrozenFunctionGraph, Op, Variable
from engine.graph.traversal import io_toposort
from engine.tensor.elemwise import DimShuffle, elemwise
from tests.engine.generated_graphs import graphs, rebuilt
from tests.engine.graph_cases import cases

GOLDEN = Path(__file__).parents[2] / "golden" / "graphs.json"


def frozen(inputs: Sequence[Variable], outputs: Sequence[Any]) -> FrozenFunctionGraph:
    return FrozenFunctionGraph.from_io(inputs, outputs)


def key(
    inputs: Sequence[Variable],
    outputs: Sequence[Any],
    interface: object = (1, ()),
    rewrites: object = ("fast_run",),
    options: object = ("numba",),
) -> CacheKey:
    return function_key(frozen(inputs, outputs), interface, rewrites, options)


def few(count: int) -> settings:
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
    )


@pytest.fixture
def x() -> Any:
    return pt.vector("x")


# What is not identity


@few(150)
@given(graphs(12, specials=True), st.randoms(use_true_random=False))
def test_names_order_sharing_and_layout_are_not_identity(graph: Any, random: Any) -> None:
    inputs, _ = graph.needed(graph.sinks)
    assert key(inputs, graph.sinks) == key(*rebuilt(inputs, graph.sinks, random))


def test_tags_are_not_identity(x: Any) -> None:
    tagged = pt.exp(x)
    tagged.tag.test_value = np.ones(3)
    assert key([x], [tagged]) == key([x], [pt.exp(x)])


def test_the_numbers_in_data_are_not_identity(x: Any) -> None:
    first, second = np.arange(33.0), np.full(33, np.nan)
    assert key([x], [x + first]) == key([x], [x + second])


def test_small_constants_are_identity_to_the_last_bit(x: Any) -> None:
    nan = struct.unpack("<d", bytes.fromhex("070000000000f87f"))[0]
    values = [0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), np.nan, nan, np.inf]
    keys = {key([x], [x + np.array([value])]).digest for value in values}
    assert len(keys) == len(values)


def test_data_begins_at_more_than_32_elements(x: Any) -> None:
    for length, is_identity in ((32, True), (33, False)):
        ones, zeros = np.ones(length), np.zeros(length)
        assert (key([x], [x + ones]) != key([x], [x + zeros])) == is_identity


# What is


def test_dtype_and_shape_of_data_are_identity(x: Any) -> None:
    m = pt.matrix("m")
    data = [
        np.ones((4, 20)),
        np.ones((20, 4)),
        np.ones((4, 21)),
        np.ones((4, 20), "f4"),
        np.ones((4, 20), "i8"),
    ]
    assert len({key([m], [m + array]).digest for array in data}) == len(data)


def test_which_data_is_used_where_is_identity(x: Any) -> None:
    a, b = np.arange(40.0), np.arange(40.0) + 1
    assert key([x], [x + a, x * b]) == key([x], [x + b, x * a])
    assert key([x], [x + a, x * b]) != key([x], [x + a, x * a])
    assert key([x], [x + a, x * a]) == key([x], [x + b, x * b.copy()])


def test_data_is_listed_in_the_order_of_its_numbers(x: Any) -> None:
    a, b = np.arange(40.0), np.arange(50)
    graph = frozen([x], [x + a, pt.sum(b) + pt.sum(x), pt.constant(a)])
    assert [constant.data.shape for constant in data_constants(graph)] == [(40,), (50,)]


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y: [pt.exp(x) - y, pt.sum(x)],
        lambda x, y: [pt.log(x) - y, pt.sum(y)],
        lambda x, y: [pt.log(x) - y, pt.max(x)],
        lambda x, y: [y - pt.log(x), pt.sum(x)],
        lambda x, y: [pt.log(y) - x, pt.sum(x)],
        lambda x, y: [pt.sum(x), pt.log(x) - y],
        lambda x, y: [pt.log(x) - y],
        lambda x, y: [pt.log(x) - y, pt.sum(x), pt.sum(x)],
        lambda x, y: [pt.log(x) - y, pt.sum(x, dtype="float32")],
        lambda x, y: [pt.log(x) - y, pt.sum(x, acc_dtype="float32")],
        lambda x, y: [pt.log(x) - y + 0, pt.sum(x)],
    ],
)
def test_every_edge_op_and_output_is_identity(change: Any) -> None:
    x, y = pt.vector("x"), pt.vector("y")
    assert key([x, y], change(x, y)) != key([x, y], [pt.log(x) - y, pt.sum(x)])


def test_the_order_and_the_types_of_inputs_are_identity() -> None:
    def of(dtype: str, shape: tuple[int | None, ...], swapped: bool = False) -> bytes:
        x, y = pt.tensor("x", dtype, shape), pt.vector("y")
        return key([y, x] if swapped else [x, y], [pt.sum(x) * y]).digest

    variants = [
        ("float64", (None,)),
        ("float32", (None,)),
        ("int64", (None,)),
        ("float64", (1,)),
        ("float64", (5,)),
    ]
    keys = {of(*variant) for variant in variants} | {
        of("float64", (None,), True),
        of("float64", (None, None)),
    }
    assert len(keys) == 7


def test_an_input_that_is_not_used_is_identity(x: Any) -> None:
    assert key([x, pt.vector()], [x + 1]) != key([x], [x + 1])


def test_properties_of_ops_are_identity() -> None:
    m = pt.tensor3("m")
    outputs = [
        *(pt.sum(m, axis=axis) for axis in [0, 1, 2, (0, 1), (0, 2), None]),
        *(pt.max(m, axis=axis) for axis in [0, 1]),
        *(pt.dimshuffle(m, order) for order in [(0, 2, 1), (2, 1, 0), (0, 1, "x", 2), ("x", 0, 1, 2)]),
        *(pt.cast(m, dtype) for dtype in ["float32", "int64", "bool"]),
        pt.shape_i(m, 0),
        pt.shape_i(m, 1),
    ]
    assert len({key([m], [output]).digest for output in outputs}) == len(outputs)


def test_interface_rewrites_and_options_are_identity(x: Any) -> None:
    outputs = [x + 1, x * 2]
    keys = [
        key([x], outputs),
        key([x], outputs, interface=(2, ())),
        key([x], outputs, interface=(1, (0,))),
        key([x], outputs, rewrites=("fast_compile",)),
        key([x], outputs, options=("numpy",)),
    ]
    assert len({k.digest for k in keys}) == len(keys)


@few(150)
@given(graphs(8), st.data())
def test_another_edge_is_another_key(graph: Any, data: Any) -> None:
    inputs, _ = graph.needed(graph.sinks)
    nodes = [node for node in io_toposort(inputs, graph.sinks) if node.inputs]
    node = data.draw(st.sampled_from(nodes))
    position = data.draw(st.integers(0, len(node.inputs) - 1))
    old = node.inputs[position]
    others = [v for v in inputs if v is not old and v.type == old.type]
    assume(others)
    before, described = key(inputs, graph.sinks), frozen(inputs, graph.sinks)
    node.inputs[position] = data.draw(st.sampled_from(others))
    try:
        after, changed = key(inputs, graph.sinks), frozen(inputs, graph.sinks)
    finally:
        node.inputs[position] = old
    assert (before == after) == (described == changed)
    assume(described != changed)


@few(200)
@given(graphs(3), graphs(3))
def test_two_graphs_have_one_key_only_if_they_are_equal(first: Any, second: Any) -> None:
    one, two = (frozen(g.inputs, g.sinks) for g in (first, second))
    if not data_constants(one) and not data_constants(two):
        assert (one == two) == (encode_graph(one) == encode_graph(two))


# What has no key


class Doubled(Op):
    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type.make_variable()])


class Unspecified(Doubled):
    __props__ = None


class Holding(Doubled):
    __props__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


def users_op(perform: Any, **held: Any) -> Op:
    """An instance, which holds `held`, of a class that is made here and computes `perform`."""
    body = {"__props__": (), "perform": perform, "make_node": Doubled.make_node}
    op: Op = type("Made", (Op,), body)()
    vars(op).update(held)
    return op


def test_a_users_op_is_the_code_of_its_class(x: Any) -> None:
    def perform(scale: Any) -> Any:
        return lambda op, node, inputs, storage: storage[0].__setitem__(0, inputs[0] * scale)

    keys = [key([x], [users_op(perform(scale))(x)]) for scale in (2, 2, 3, 2.0)]
    assert keys[0] == keys[1]
    assert len({key.digest for key in keys}) == 3


def test_what_a_users_op_holds_besides_its_properties_is_identity_unless_it_is_private(x: Any) -> None:
    def of(**held: Any) -> CacheKey:
        return key([x], [users_op(None, **held)(x)])

    assert of(scale=2) != of(scale=3)
    assert of(_last=2) == of(_last=3)
    for method in ("infer_shape", "numba_function"):  # what follows from these is stored
        assert of(_last=2, **{method: None}) != of(_last=3, **{method: None})
    with pytest.raises(Unfingerprintable, match="attribute 'log'"):
        of(log=sys.stdout)


def test_a_users_op_may_hold_types_graphs_and_ops(x: Any) -> None:
    held = [
        (x.type, pt.lvector().type),
        {"op": DimShuffle(1, ("x", 0)), "graph": frozen([x], [pt.exp(x)])},
        {"op": DimShuffle(1, ("x", 0)), "graph": frozen([x], [pt.log(x)])},
        Holding((Doubled(), 2)),
        Holding((Doubled(), 3)),
    ]
    assert len({key([x], [users_op(None, held=value)(x)]).digest for value in held}) == len(held)


def test_users_ops_that_apply_each_other_have_keys(x: Any) -> None:
    one, other = (key([x], [op()(x)]) for op in (There, Back))
    assert one != other
    assert one == key([x], [There()(x)])


class There(Doubled):
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return [back(cotangents[0]) * pt.exp(inputs[0])]


class Back(Doubled):
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return [there(cotangents[0])]


there, back = There(), Back()


def test_the_names_of_users_ops_are_what_describes_them(x: Any) -> None:
    first, second = users_op(None, scale=2), users_op(None, scale=3)
    users = UserOps()
    encode_graph(frozen([x], [second(first(x))]), users)
    others = UserOps()
    encode_graph(frozen([x], [users_op(None, scale=2)(x)]), others)
    assert set(others.by_name) < set(users.by_name)
    assert users.by_name[users.name_of(second)] is second
    with pytest.raises(UndescribedOpError, match="Doubled"):
        users.name_of(Doubled())
    check_ops(users.by_name)
    swapped = dict(zip(users.by_name, [*users.by_name.values()][::-1], strict=True))
    with pytest.raises(ValueError, match="another here"):
        check_ops(swapped)


def test_an_op_without_declared_properties_has_no_key(x: Any) -> None:
    with pytest.raises(Unfingerprintable, match="__props__"):
        key([x], [Unspecified()(x)])


def test_the_path_to_what_has_no_key_names_the_property(x: Any) -> None:
    with pytest.raises(Unfingerprintable) as caught:
        key([x], [Holding(sys.stdout)(x)])
    assert "Holding" in str(caught.value)


# The encoding itself


@pytest.mark.parametrize("name", cases())
def test_the_encodings_of_known_graphs_are_known(name: str) -> None:
    expected = json.loads(GOLDEN.read_text())
    assert encode_graph(cases()[name]).hex() == expected[name]


def test_the_encoding_is_what_the_grammar_says(x: Any) -> None:
    encoding = encode_graph(frozen([x], [x]))
    kind = b"\x12engine.tensor.type\x0aTensorType" + b"\2(\2s\x07float64(\1N"
    assert encoding[2:] == b"\1" + bytes((len(kind),)) + kind + b"\0\0" + b"\1\0" + b"\0" + b"\1\0"


def test_a_key_names_its_parts(x: Any) -> None:
    parts = dict(key([x], [x]).parts)
    assert list(parts) == [
        "scheme",
        "graph",
        "interface",
        "rewrites",
        "code",
        "options",
        "toolchain",
        "target",
    ]


def test_nothing_in_a_key_says_where_the_engine_lies(x: Any) -> None:
    everything = b"".join(
        part for _, part in key([x], [DimShuffle(1, ("x", 0))(elemwise(pt.exp.scalar_op)(x))]).parts
    )
    assert str(Path(__file__).parents[3]).encode() not in everything


def test_the_code_in_a_key_is_the_source_of_the_whole_engine():
    root = Path(engine.__file__).parent
    assert engine_code() == source_digest(root)
    assert kernel_code() == b"".join(
        source_digest(root / room) for room in ("lowering", "codegen", "runtime")
    )
