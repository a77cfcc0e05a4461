"""With the adapter, frozen nodes that differ in bits are two; without it, PyTensor's table is restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant, FrozenApply
from pytensor.scalar.basic import Composite

import cachegraph.pytensor


@pytest.fixture
def exact() -> Any:
    """Install the adapter, and check that PyTensor's own table comes back afterwards."""
    shared = FrozenApply._cache
    cachegraph.pytensor.install()
    yield
    cachegraph.pytensor.uninstall()
    assert FrozenApply._cache is shared


def scaled(number: Any) -> Any:
    z = ps.float64("z")
    return Composite([z], [z * ps.constant(number, dtype="float64")])


def held(op: Any) -> bytes:
    """Return the bits of the constants within `op`."""
    variables = [variable for node in op.fgraph.toposort() for variable in node.inputs]
    return b"".join(np.asarray(v.data).tobytes() for v in variables if isinstance(v, Constant))


def test_pytensor_itself_takes_minus_zero_for_zero() -> None:
    zero, minus = scaled(0.0), scaled(-0.0)
    assert zero == minus
    assert held(minus) == np.float64(0.0).tobytes()


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("numbers", [(0.0, -0.0), (-0.0, 0.0)], ids=str)
def test_zero_and_minus_zero_within_ops_are_two(numbers: tuple[float, float]) -> None:
    first, second = map(scaled, numbers)
    assert first != second
    assert [held(first), held(second)] == [np.float64(number).tobytes() for number in numbers]
    assert [scaled(number) for number in numbers] == [first, second]


@pytest.mark.usefixtures("exact")
def test_a_nan_is_its_bits() -> None:
    numbers = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], "u8").view("f8")
    ops = [scaled(number) for number in numbers]
    assert [held(op) for op in ops] == [number.tobytes() for number in numbers]
    assert len(set(ops)) == 3


@pytest.mark.usefixtures("exact")
def test_arrays_are_their_bits_and_what_is_equal_is_still_one() -> None:
    x = pt.vector("x")
    ops = [OpFromGraph([x], [x + pt.constant(np.array(row))]) for row in ([1, 0.0], [1, -0.0], [1, 0.0])]
    assert ops[0].fgraph == ops[2].fgraph != ops[1].fgraph
    (first,), (third,) = (op.fgraph.toposort() for op in (ops[0], ops[2]))
    assert first is third


def test_nodes_that_were_made_before_are_the_same_ones(request: pytest.FixtureRequest) -> None:
    before = scaled(2.5)
    request.getfixturevalue("exact")
    assert scaled(2.5) == before
    assert scaled(2.5).fgraph.toposort()[0] is before.fgraph.toposort()[0]


class Times(ps.UnaryScalarOp):
    """An Op whose instances are equal, whatever they multiply by."""

    __props__ = ()

    def __init__(self, factor: float) -> None:
        super().__init__(ps.same_out)
        self.factor = factor

    def impl(self, x: Any) -> Any:
        return x * self.factor


def times(factor: float) -> Any:
    z = ps.float64("z")
    return Composite([z], [Times(factor)(z)])


def factors(op: Any) -> list[float]:
    return [node.op.factor for node in op.fgraph.toposort()]


def test_pytensor_itself_takes_ops_of_equal_props_for_one() -> None:
    first, second = times(2.0), times(3.0)
    assert factors(second) == factors(first)


@pytest.mark.usefixtures("exact")
def test_users_ops_that_are_not_alike_are_two_within_ops() -> None:
    first, second = times(4.0), times(5.0)
    assert first != second
    assert [factors(op) for op in (first, second)] == [[4.0], [5.0]]
    assert [times(4.0), times(5.0)] == [first, second]
