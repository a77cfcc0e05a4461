import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.rewriting import rewrite_graph

X = np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan])


def test_a_float_beside_itself_may_be_nan(rewritten):
    x = pt.dvector("x")
    for known in (pt.lt(x, x), pt.gt(x, x), pt.maximum(x, x), pt.minimum(x, x)):
        assert {"lt", "gt", "maximum", "minimum"}.isdisjoint(rewritten(x, known).check_values(X).ops)
    for unknown, name in (
        (pt.le(x, x), "le"),
        (pt.ge(x, x), "ge"),
        (pt.eq(x, x), "eq"),
        (pt.neq(x, x), "neq"),
    ):
        assert rewritten(x, unknown).check_values(X).ops == [name]


def test_whole_numbers_beside_themselves_are_known(rewritten):
    n = pt.lvector("n")
    for known in (n <= n, n >= n, pt.eq(n, n), pt.neq(n, n), n & n, n | n, n ^ n):
        ops = rewritten(n, known).check_values(np.array([0, -3, 7])).ops
        assert set(ops) <= {"second"}


def test_lengths_are_not_negative(rewritten):
    x, y = pt.dvector("x"), pt.dvector("y")
    length = x.shape[0] + y.shape[0]
    known = [length < 0, length >= 0, length > -1, pt.eq(length, -1), pt.gt(0, length), pt.minimum(0, length)]
    for comparison in known:
        assert rewritten([x, y], comparison).check_values(X, X).ops == []
    assert "maximum" not in rewritten([x, y], pt.maximum(length, 0)).check_values(X, X).ops
    for unknown in (length > 0, pt.eq(length, 0), pt.maximum(length, 1), length - 9 < 0):
        assert rewritten([x, y], unknown).check_values(X, X).ops != []


def test_a_vector_of_lengths_is_compared_as_they_are(rewritten):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    lengths = pt.stack([x.shape[1], x.shape[0], x.shape[0] * 2])
    for known in (pt.eq(lengths, -1), lengths >= 0, pt.lt(lengths, 0), pt.minimum(lengths, 0)):
        graph = rewritten(x, known).check_values(X[None])
        assert graph.ops == ["Alloc"]
    assert "maximum" not in rewritten(x, pt.maximum(lengths, 0)).check_values(X[None]).ops
    assert "eq" in rewritten(x, pt.eq(lengths, 0)).check_values(X[None]).ops
    mixed = pt.eq(pt.stack([x.shape[0], n]), -1)
    assert "eq" in rewritten([x, n], mixed).check_values(X[None], np.int64(-1)).ops


@pytest.mark.parametrize("condition", [True, False, np.array([[0.0]]), np.nan])
def test_a_known_condition_chooses_in_the_shape_of_both(rewritten, condition):
    row, column = pt.drow("row"), pt.dcol("column")
    graph = rewritten([row, column], pt.where(condition, row, column))
    assert "where" not in graph.check_values(X[None], X[:4, None]).ops


def test_equal_branches_need_no_condition_and_zeros_have_signs(rewritten):
    c, x = pt.dvector("c"), pt.dvector("x")
    assert "where" not in rewritten([c, x], pt.where(c, x, x)).check_values(X, X).ops
    assert "where" not in rewritten(c, pt.where(c, 2.0, 2.0)).check_values(X).ops
    assert "where" in rewritten(c, pt.where(c, 0.0, -0.0)).check_values(X, exact=True).ops


def test_integers_divided_by_one_are_themselves_and_floats_are_rounded_down(rewritten):
    n, x = pt.lvector("n"), pt.dvector("x")
    assert rewritten(n, n // 1).check_values(np.array([-3, 4])).ops == []
    assert rewritten(x, x // 1).check_values(X[:3]).ops != []


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64"])
def test_bits_that_are_all_set_or_none_are_neutral_or_the_result(dtype):
    x = pt.vector("x", dtype=dtype)
    full = np.array(True) if dtype == "bool" else np.array(-1).astype(dtype)
    none = np.zeros((), dtype=dtype)
    assert rewrite_graph(x & full) is x
    assert rewrite_graph(none | x) is x
    graphs = [x & none, x | full, x & full, x | none, pt.bitwise_and(x, np.int16(1)), pt.bitwise_or(x, 1)]
    value = np.array([0, 1, 1]).astype(dtype)
    for graph, found in zip(graphs, engine.function([x], graphs)(value), strict=True):
        expected = engine.function([x], graph, mode="NUMPY")(value)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_a_choice_between_zeros_of_one_sign_is_none():
    condition = pt.scalar("condition", dtype="bool")
    zeros = pt.constant(np.int8(0)), pt.constant(np.int64(0))
    assert rewrite_graph(pt.switch(condition, *zeros)).data == 0
    for zero in (0.0, -0.0):
        floats = pt.constant(np.float32(zero)), pt.constant(np.float64(zero))
        found = rewrite_graph(pt.switch(condition, *floats))
        assert found.dtype == "float64"
        assert np.signbit(found.data) == np.signbit(zero)
    signed = pt.switch(condition, 0.0, -0.0)
    assert np.signbit(engine.function([condition], signed)(False))
