"""What is known of the signs of expressions."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.rewriting import rewrite_graph
from engine.tensor.signs import is_non_negative, is_positive

x, n, k, u = pt.dvector("x"), pt.lscalar("n"), pt.lscalar("k"), pt.scalar("u", "uint8")
length = x.shape[0]


@pytest.mark.parametrize(
    "variable",
    [
        pt.constant([1.0, 2.0]),
        pt.exp(x) + 1.0,
        pt.sqrt(pt.sigmoid(x))[2:],
        pt.alloc(pt.softplus(pt.dscalar()), 3).dimshuffle(0, "x"),
        pt.maximum(n, 1),
        pt.minimum(pt.maximum(n, 3), 2),
        pt.stack([pt.constant(1), pt.maximum(k, 5)]),
    ],
)
def test_positive_elements_are_known(variable):
    assert is_positive(variable)
    assert is_non_negative(variable)


@pytest.mark.parametrize(
    "variable",
    [
        pt.constant([0.0, 2.0]),
        length,
        pt.shape_i(x, 0) * 2 + pt.size(x),
        u,
        pt.cast(u, "int64"),
        pt.cast(u, "float32"),
        pt.cast(pt.constant(0.5), "int64"),
        pt.cast(pt.scalar(dtype="bool"), "int8"),
        pt.minimum(length, pt.cast(u, "int64")),
        pt.maximum(n, 0),
        pt.stack([length, pt.constant(0)])[0],
        pt.tensor_from_scalar(pt.scalar_from_tensor(length)),
    ],
)
def test_elements_that_are_not_negative_are_known(variable):
    assert is_non_negative(variable)
    assert not is_positive(variable)


@pytest.mark.parametrize(
    "variable",
    [
        x,
        n,
        n * n,
        pt.constant([-1.0, 2.0]),
        pt.constant([np.nan, 2.0]),
        pt.constant(np.ones(33)),  # data
        length - 1,
        pt.minimum(length, n),
        pt.cast(u, "int8"),
        pt.cast(pt.scalar(dtype="uint64"), "int64"),
        pt.cast(pt.constant(2.0**63), "int64"),
        pt.cast(pt.exp(x), "int64"),
        pt.cast(u, "int64") * pt.cast(pt.scalar(dtype="uint64"), "float64"),
        pt.stack([length, n]),
        pt.constant(1 + 1j) * 1.0,
    ],
)
def test_nothing_is_known_of_other_elements(variable):
    assert not is_non_negative(variable)


def test_products_of_numbers_that_may_wrap_are_not_known():
    large = pt.cast(pt.scalar(dtype="uint32"), "int64")
    assert is_non_negative(large)
    assert not is_non_negative(large * large)


def test_a_deep_expression_is_not_searched_to_its_roots():
    deep = length
    for _ in range(10_000):
        deep = pt.minimum(deep, length)
    assert not is_non_negative(deep)


def test_comparisons_with_0_of_what_is_not_negative_are_known():
    shorter = pt.minimum(length, pt.cast(u, "int64"))
    for compared, value in ((shorter >= 0, True), (shorter < 0, False)):
        found = rewrite_graph(compared)
        assert found.data == value
        assert engine.function([x, u], compared)(np.ones(3), 2) == value
    assert rewrite_graph(pt.maximum(shorter, 0)).owner.op == shorter.owner.op
    assert engine.function([x, u], pt.maximum(shorter, 0))(np.ones(3), 2) == 2
