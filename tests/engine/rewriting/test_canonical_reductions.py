import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph
from engine.rewriting.walking import out2in
from engine.tensor.rewriting.math import local_sum_prod_of_mul_or_div

ROW, COLUMN, X = np.array([[0.5, -2.0, 3.0]]), np.array([[1.5], [-4.0]]), np.arange(6.0).reshape(2, 3) - 2.5


@pytest.fixture
def named():
    return [pt.drow("row"), pt.dcol("column"), pt.dmatrix("x")]


def in_front(output):
    return rewrite_graph(output, include=(), custom_rewrite=out2in(local_sum_prod_of_mul_or_div))


@pytest.mark.parametrize("reduced", [pt.sum, pt.prod])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "build", [lambda r, c, x: r * x * c, lambda r, c, x: x / r, lambda r, c, x: x / c, lambda r, c, x: c * r]
)
def test_what_is_equal_along_the_axes_is_a_factor_of_the_result(named, reduced, axis, build):
    written = reduced(build(*named), axis=axis)
    found = in_front(written)
    before, after = (
        engine.function(named, v, mode="NUMPY", on_unused_input="ignore")(ROW, COLUMN, X)
        for v in (written, found)
    )
    np.testing.assert_allclose(after, before, rtol=1e-13)
    is_in_front = found.owner.op in (pt.mul, pt.true_div)
    assert is_in_front or build(*named).owner.inputs[-1] is named[1 - axis]


def test_a_factor_of_a_product_is_there_as_often_as_there_are_elements(named):
    row, _, x = named
    found = in_front(pt.prod(row * x, axis=0))
    function = engine.function([row, x], found)
    np.testing.assert_allclose(function(ROW, X), np.prod(ROW * X, axis=0))
    np.testing.assert_array_equal(function(ROW, X[:0]), np.ones(3))


def test_numerators_whole_numbers_and_full_reductions_stay(named):
    row, column, x = named
    n, m = pt.lmatrix("n"), pt.lrow("m")
    for kept in (
        pt.sum(row / x, axis=0),
        pt.sum(row * x * column),
        pt.sum(m * n, axis=0),
        pt.sum(x, axis=()),
    ):
        assert in_front(kept) is kept


def test_functions_have_it_by_name_alone(named):
    row, _, x = named
    written = pt.prod(row * x, axis=0)
    assert equal_computations([rewrite_graph(written, include=("specialize",))], [written])
    found = rewrite_graph(written, include=("local_sum_prod_of_mul_or_div",))
    assert found.owner.op == pt.mul
