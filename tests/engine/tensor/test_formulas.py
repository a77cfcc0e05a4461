"""Variables as formulas."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.printing import pp

x, y, v, A, i = pt.dscalar("x"), pt.dscalar("y"), pt.dvector("v"), pt.dmatrix("A"), pt.lscalar("i")


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        (x, "x"),
        (pt.dscalar(), "<Scalar(float64, shape=())>"),
        ((x + y) ** 2 / y, "(((x + y) ** 2.0) / y)"),
        (x - (y - 1), "(x - (y - 1.0))"),
        (-x * abs(y), "((-x) * |y|)"),
        (pt.exp(x) + 1, "(Exp(x) + 1.0)"),
        (x // y, "(x // y)"),
        (pt.switch(x > y, x, pt.maximum(x, y)), "Where(Gt(x, y), x, Maximum(x, y))"),
        (v.sum() * A.sum(axis=0), "(sum(v, axis=None) * sum(A, axis=(0,)))"),
        (A.T + v, "(A.T + v)"),
        (pt.tensor3("t").transpose(1, 0, 2), "DimShuffle{order=[1,0,2]}(t)"),
        (v[0:2], "v[0:2]"),
        (v[i] + v[1:3] + A[:, 0], "((v[i] + v[1:3]) + A[:, 0])"),
        (pt.cast(i, "float64"), "float64(i)"),
        (pt.constant(np.arange(20.0)), "<Vector(float64, shape=(20,))>"),
        (pt.linalg.slogdet(A)[1], "SLogDet(A).1"),
        (A[1:, 0].set(2.0), "set_subtensor(A[1:, 0], 2.0)"),
        (A[pt.lvector("i"), :3], "A[i, :3]"),
        (A[pt.lvector("i")].inc(A), "inc_subtensor(A[i], A)"),
        (A[pt.lvector("i")].inc(v), "inc_subtensor(A[i], v)"),
    ],
)
def test_a_variable_is_written_on_one_line(variable, text):
    assert pp(variable) == text


def test_a_deep_formula_is_written_without_recursion():
    deep = x
    for _ in range(5000):
        deep = -deep
    assert pp(deep).count("-") == 5000
