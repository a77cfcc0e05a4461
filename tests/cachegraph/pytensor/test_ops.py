"""The key contains what an Op computes: its class by release or code, all attributes, inner graphs."""

from __future__ import annotations

import sys
import threading
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import get_mode
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.extra_ops import CumOp

from cachegraph.errors import Unfingerprintable
from tests.cachegraph.pytensor.describing import described, key_of

SCALED = """
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

FACTOR = {factor}

def helper(x):
    return x * FACTOR

class Scaled(Op):
    __props__ = ("power",)

    def __init__(self, power):
        self.power = power

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, storage):
        storage[0][0] = helper(inputs[0]) {operator} self.power
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a module from source, like a user's script or package."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, source: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return make


def test_a_users_op_is_its_code_wherever_it_is_written(module: Any) -> None:
    x = pt.vector("x")
    keys = {}
    for name, factor, operator in (
        ("first", 2, "+"),
        ("copied", 2, "+"),
        ("another_body", 2, "-"),
        ("another_helper", 3, "+"),
    ):
        made = module(f"scaled_{name}", SCALED.format(factor=factor, operator=operator))
        keys[name] = key_of([x], made.Scaled(1)(x))
        assert key_of([x], made.Scaled(2)(x)) != keys[name]
        assert described([x], made.Scaled(1)(x)).classes == (made.Scaled,)
    assert keys["first"] == keys["copied"]
    assert len(set(keys.values())) == 3


def test_comments_and_places_are_not_in_the_key(module: Any) -> None:
    x = pt.vector("x")
    source = SCALED.format(factor=2, operator="+")
    plain = module("plain_op", source)
    moved = module("moved_op", "# a comment\n\n" + source.replace("class", "# another\nclass"))
    assert key_of([x], plain.Scaled(1)(x)) == key_of([x], moved.Scaled(1)(x))


def test_a_users_op_within_other_ops_is_its_code(module: Any) -> None:
    x = pt.vector("x")
    keys = []
    for number, operator in enumerate("+-+"):
        made = module(f"within_{number}", SCALED.format(factor=2, operator=operator))
        op = OpFromGraph([x], [made.Scaled(1)(x)])
        keys.append(key_of([x], op(x)))
        assert described([x], op(x)).classes == (made.Scaled,)
    assert keys[0] == keys[2] != keys[1]


class Holder(Op):
    """An Op that holds any value outside of __props__."""

    __props__ = ()

    def __init__(self, held: Any) -> None:
        self.held = held

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, storage: Any) -> None:
        storage[0][0] = inputs[0] + self.held


def test_attributes_outside_of_props_are_in_the_key() -> None:
    x = pt.vector("x")
    assert Holder(1) == Holder(2)
    assert key_of([x], Holder(1)(x)) != key_of([x], Holder(2)(x))
    assert key_of([x], Holder(0.0)(x)) != key_of([x], Holder(-0.0)(x))
    assert key_of([x], Holder(1)(x)) != key_of([x], Holder(True)(x))


def test_attributes_of_the_same_bits_are_told_apart_in_ops_of_a_release() -> None:
    x = pt.vector("x")
    keys = set()
    numbers = np.float64(0), np.int64(0), np.zeros(1), np.zeros((1, 1))
    for value in (*numbers, bytes(8), (np.int64(0),), (np.uint64(0),)):
        op = CumOp(axis=0, mode="add")
        op.held = value
        keys.add(key_of([x], op(x)))
    assert len(keys) == 7


def test_an_op_that_holds_what_has_no_encoding_is_refused_with_the_path_to_it() -> None:
    x = pt.vector("x")
    with pytest.raises(Unfingerprintable, match=r"op Holder -> \.held -> \['lock'\].*lock"):
        described([x], Holder({"lock": threading.Lock()})(x))


def test_a_wrapped_function_is_its_code_and_what_it_captured() -> None:
    x = pt.dvector("x")

    def wrapped(factor: float, doubled: bool) -> Any:
        if doubled:
            return wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])(lambda v: v * factor * 2)
        return wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])(lambda v: v * factor)

    keys = [key_of([x], wrapped(*how)(x)) for how in ((1.0, False), (1.0, False), (2.0, False), (1.0, True))]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_an_elemwise_of_another_numpy_function_is_another_op_though_pytensor_says_equal() -> None:
    x = pt.vector("x")
    first = Elemwise(ps.exp, nfunc_spec=("exp", 1, 1))
    second = Elemwise(ps.exp, nfunc_spec=("exp2", 1, 1))
    assert first == second
    assert key_of([x], first(x)) != key_of([x], second(x))


def test_how_gradients_are_taken_is_not_in_the_key() -> None:
    x = pt.vector("x")
    plain = OpFromGraph([x], [pt.exp(x)])
    overridden = OpFromGraph(
        [x], [pt.exp(x)], pullback=lambda inputs, outputs, cotangents: [cotangents[0] * 2]
    )
    assert key_of([x], plain(x)) == key_of([x], overridden(x))
    assert key_of([x], plain(x)) != key_of([x], OpFromGraph([x], [pt.exp(x)], inline=True)(x))


def test_the_graph_within_an_op_is_in_the_key() -> None:
    x = pt.vector("x")
    z = ps.float64("z")
    keys = {
        key_of([x], OpFromGraph([x], [pt.exp(x) * 2])(x)),
        key_of([x], OpFromGraph([x], [pt.exp(x) * 3])(x)),
        key_of([x], OpFromGraph([x], [OpFromGraph([x], [pt.exp(x) * 2])(x)])(x)),
        key_of([x], OpFromGraph([x], [OpFromGraph([x], [pt.exp(x) * 3])(x)])(x)),
        key_of([x], Elemwise(Composite([z], [ps.exp(z) * 2]))(x)),
        key_of([x], Elemwise(Composite([z], [ps.exp(z) * 3]))(x)),
    }
    assert len(keys) == 6


def test_how_an_array_lies_in_memory_is_in_the_key() -> None:
    x = pt.matrix("x")
    array = np.arange(6.0).reshape(2, 3) + 1
    plain = key_of([x], x + pt.constant(array))
    assert key_of([x], x + pt.constant(array.copy())) == plain
    assert key_of([x], x + pt.constant(np.asfortranarray(array))) != plain
    assert key_of([x], x + pt.constant(np.repeat(array, 2, axis=1)[:, ::2])) != plain


@pytest.mark.parametrize(
    "pair",
    [
        (1, 2),
        (np.int8(1), np.int16(1)),
        (1.0, 1),
        (float("nan"), 0.0),
        ([1, 2], [2, 1]),
        (np.bool_(True), np.int8(1)),
    ],
    ids=str,
)
def test_constants_are_their_type_and_bits(pair: Any) -> None:
    x = pt.vector("x")
    first, second = (key_of([x], x + pt.constant(value)) for value in pair)
    assert first != second


def test_a_graph_of_thousands_of_nodes_in_a_row_is_described_without_recursion() -> None:
    x = y = pt.scalar("x")
    for _ in range(6000):
        y = pt.sin(y)
    before = sys.getrecursionlimit()
    assert described([x], y).nodes == 6000
    assert sys.getrecursionlimit() == before


def test_loops_are_described_by_what_they_do() -> None:
    x = pt.vector("x")

    def loop(factor: float, **options: Any) -> Any:
        return pytensor.scan(
            lambda item, before: before * factor + item,
            sequences=[x],
            outputs_info=[pt.ones(())],
            return_updates=False,
            **options,
        )

    keys = [
        key_of([x], result)
        for result in (loop(0.5), loop(0.5), loop(0.5, name="named"), loop(2.0), loop(0.5, go_backwards=True))
    ]
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys)) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        modes = [
            key_of([x], loop(0.5, mode=get_mode("NUMBA").excluding(*tags))) for tags in ((), (), ("fusion",))
        ]
    assert modes[0] == modes[1]
    assert len({*modes, keys[0]}) == 3


def test_a_wrapped_function_that_tells_shapes_is_its_code_too() -> None:
    x = pt.dvector("x")

    def wrapped(factor: int) -> Any:
        def shapes(fgraph: Any, node: Any, found: Any) -> Any:
            return [(found[0][0] * factor,)]

        return wrap_py(itypes=[pt.dvector], otypes=[pt.dvector], infer_shape=shapes)(lambda v: v)

    assert key_of([x], wrapped(1)(x)) == key_of([x], wrapped(1)(x)) != key_of([x], wrapped(2)(x))


def test_constants_that_are_no_arrays_are_what_they_hold() -> None:
    import pytensor.sparse as sparse
    import scipy.sparse
    from pytensor.tensor.random.type import random_generator_type
    from pytensor.tensor.type_other import NoneConst, SliceConstant, slicetype
    from pytensor.typed_list import TypedListType

    matrices = [scipy.sparse.csr_matrix(np.eye(3) * k) for k in (1, 1, 2)]
    lists = TypedListType(pt.dvector)
    several: list[list[Any]] = [
        [sparse.as_sparse_variable(matrix) for matrix in matrices],
        [random_generator_type.make_constant(np.random.default_rng(seed)) for seed in (1, 1, 2)],
        [SliceConstant(slicetype, slice(None, stop)) for stop in (1, 1, 2)],
        [lists.make_constant([np.ones(2) * k]) for k in (1, 1, 2)],
        [NoneConst, NoneConst.clone(), pt.constant(0)],
    ]
    for first, same, other in several:
        assert key_of([], first) == key_of([], same) != key_of([], other), first.type


def test_a_distribution_of_a_users_own_is_its_code() -> None:
    pm = pytest.importorskip("pymc")

    def drawn(scale: float) -> Any:
        def random(mean: Any, rng: Any = None, size: Any = None) -> Any:
            return rng.normal(mean, scale, size=size)

        with pm.Model() as model:
            pm.CustomDist(
                "own", pm.Normal("mean"), logp=lambda value, mean: -((value - mean) ** 2), random=random
            )
        return model.basic_RVs

    assert key_of([], drawn(1.0)) == key_of([], drawn(1.0)) != key_of([], drawn(2.0))


def test_a_differential_equation_is_the_function_it_is_made_of() -> None:
    ode = pytest.importorskip("pymc.ode")
    start, rates = pt.vectors("start", "rates")

    def decay(scale: float) -> Any:
        def slope(y: Any, t: float, p: Any) -> Any:
            return [-scale * p[0] * y[0]]

        equation = ode.DifferentialEquation(slope, np.arange(1.0, 3.0), n_states=1, n_theta=1)
        return equation(start, rates)

    keys = [key_of([start, rates], decay(scale)) for scale in (1.0, 1.0, 2.0)]
    assert keys[0] == keys[1] != keys[2]
