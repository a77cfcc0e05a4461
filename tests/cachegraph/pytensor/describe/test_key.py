"""The key of a PyTensor function says what it computes, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In, Out
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.key import describe
from tests.cachegraph.pytensor.describing import described, key_of


def test_the_same_graph_made_twice_has_one_key() -> None:
    keys = set()
    for name in ("x", "another"):
        x = pt.vector(name)
        keys.add(key_of([x], pt.exp(x) + 1))
    assert len(keys) == 1


def test_an_edge_an_op_a_type_and_an_output_more_each_make_another_key() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    z = pt.fvector("z")
    keys = [
        key_of([x, y], x - y),
        key_of([x, y], y - x),
        key_of([x, y], x + y),
        key_of([z, y], z - y),
        key_of([x, y], [x - y]),
        key_of([x, y], [x - y, x]),
        key_of([y, x], [y - x, y]),
    ]
    assert len(set(keys)) == 5
    assert keys[0] == keys[4]
    assert keys[5] == keys[6]


@pytest.mark.parametrize("tag", ["psd", "symmetric", "lower_triangular", "upper_triangular"])
def test_a_tag_that_a_rewrite_reads_is_in_the_key(tag: str) -> None:
    a, b = pt.matrix("a"), pt.vector("b")
    plain = key_of([a, b], pt.linalg.solve(a, b))
    setattr(a.tag, tag, True)
    assert key_of([a, b], pt.linalg.solve(a, b)) != plain


def test_a_tag_that_nobody_reads_is_not_in_the_key() -> None:
    x = pt.vector("x")
    plain = key_of([x], x + 1)
    x.tag.comment = object()
    assert key_of([x], x + 1) == plain


def test_zero_and_minus_zero_are_two_constants() -> None:
    x = pt.vector("x")
    for zero, minus in ((0.0, -0.0), (np.float32(0.0), np.float32(-0.0)), (1 + 0j, complex(1, -0.0))):
        assert key_of([x], x / pt.constant(zero)) != key_of([x], x / pt.constant(minus))
    assert key_of([x], x / pt.constant(0.0)) != key_of([x], x / pt.constant(0))


def test_the_interface_is_in_the_key() -> None:
    x = pt.vector("x")
    keys = {
        key_of([x], x + 1),
        key_of([In(x, borrow=True)], x + 1),
        key_of([In(x, mutable=True)], x + 1),
        key_of([x], Out(x + 1, borrow=True)),
        key_of([x], x + 1, accept_inplace=True),
    }
    assert len(keys) == 5


def test_the_values_of_shared_variables_and_generators_are_not_in_the_key() -> None:
    keys = set()
    for seed in (1, 2):
        weights = pytensor.shared(np.full(3, float(seed)), shape=(3,))
        rng = pt.random.shared_rng(seed=seed)
        following, draw = rng.normal(size=3)
        keys.add(key_of([], draw * weights, updates={rng: following, weights: weights + 1}))
    assert len(keys) == 1


def test_large_constants_are_data_where_asked() -> None:
    x = pt.scalar("x")
    first, second = (pt.constant(np.arange(40.0) * k) for k in (1, 2))
    assert key_of([x], x * first) != key_of([x], x * second)
    description = described([x], x * first, large_constants=True)
    assert description.constants == (first,)
    assert description.key == described([x], x * second, large_constants=True).key


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "CVM", "JAX"])
def test_any_linker_but_numbas_is_refused(mode: str) -> None:
    x = pt.vector("x")
    with pytest.raises(Unfingerprintable, match="linker"):
        described([x], x + 1, mode=mode)


def test_a_variable_that_is_given_is_not_the_one_that_its_node_computes() -> None:
    m, other = pt.dmatrix("m"), pt.dmatrix("other")
    q, r = pt.linalg.qr(m)
    keys = {
        describe([In(given), In(m)], [Out(r.sum() + q.sum())], get_mode("NUMBA")).key.hex
        for given in (q, other)
    }
    assert len(keys) == 2


def test_what_is_in_an_array_now_is_in_the_key_of_a_graph_that_holds_it() -> None:
    x = pt.dvector("x")
    data = np.array([1.0, 2.0, 3.0])
    held = [OpFromGraph([x], [x * pt.as_tensor(data)])]
    keys = [key_of([x], held[0](x)), key_of([x], held[0](x))]
    data[:] = [2.0, 3.0, 1.0]  # of the same sum: PyTensor takes the next graph for the first
    held.append(OpFromGraph([x], [OpFromGraph([x], [x * pt.as_tensor(data)])(x)]))
    held.append(OpFromGraph([x], [x * pt.as_tensor(data)]))
    keys += [key_of([x], held[2](x)), key_of([x], held[1](x))]
    data[:] = [3.0, 1.0, 2.0]
    keys.append(key_of([x], held[1](x)))
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


class Adding(Op):
    """An Op that adds a number in Python."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, storage: Any) -> None:
        storage[0][0] = inputs[0] + node.tag.amount


@pytest.mark.parametrize("place", ["node", "input", "output"])
def test_tags_that_a_users_op_may_read_when_it_runs_are_refused(place: str) -> None:
    x = pt.dvector("x")
    y = Adding()(x)
    described([x], y)
    {"node": y.owner, "input": x, "output": y}[place].tag.amount = 2.0
    with pytest.raises(Unfingerprintable, match=r"the tags \['amount'\]"):
        described([x], y)
