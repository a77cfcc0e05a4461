"""What index arrays change, where it is known that they select no element twice."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import Mode
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph

A, a, b = pt.matrix("A"), pt.vector("a"), pt.vector("b")
rows, columns = (pt.constant(np.array(each)) for each in ([0, 1, 1], [0, 0, 1]))
twice = pt.constant(np.array([0, 1, 1]))
lo = pt.lscalar("lo")
T, S, R = pt.tensor3("T"), pt.matrix("S"), pt.matrix("R")

SAME = {
    "an increment that is read": (A[rows, columns].inc(a)[rows, columns], A[rows, columns] + a),
    "an increment of what is set": (
        A[rows, columns].set(a)[rows, columns].inc(b),
        A[rows, columns].set(a + b),
    ),
    "the same behind a slice": (
        T[lo:, rows, columns].set(S)[lo:, rows, columns].inc(R),
        T[lo:, rows, columns].set(S + R),
    ),
    "the same with fewer axes than the part": (
        T[lo:, rows, columns].set(a)[lo:, rows, columns].inc(b),
        T[lo:, rows, columns].set(a + b),
    ),
    "what is set to itself and more": (
        A[rows, columns].set(A[rows, columns] + a),
        A[rows, columns].inc(a),
    ),
}
KEPT = {
    "an increment at one place twice": A[twice, twice].inc(a)[twice, twice],
    "an increment of what is set twice": A[twice, twice].set(a)[twice, twice].inc(b),
    "what is set twice": A[twice, twice].set(A[twice, twice] + a),
    "what is set to other elements and more": A[rows, columns].set(A[columns, rows] + a),
    "what is set to itself of another tensor": A[rows, columns].set(S[rows, columns] + a),
}


@pytest.mark.parametrize("name", SAME)
def test_one_change_is_left(name):
    written, due = SAME[name]
    assert equal_computations([rewrite_graph(written)], [rewrite_graph(due)])


@pytest.mark.parametrize("name", KEPT)
def test_a_change_stays(name):
    assert equal_computations([rewrite_graph(KEPT[name])], [KEPT[name]])


def test_the_numbers_stay(kernels_once):
    rng = np.random.default_rng(1)
    inputs = [A, a, b, T, S, R, lo]
    values = [
        *(rng.normal(size=(3, 3)), np.array([np.inf, -0.0, 1e308]), np.array([-np.inf, 0.0, 1e308])),
        *(rng.normal(size=(4, 3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), 1),
    ]
    outputs = [*(written for written, _ in SAME.values()), *KEPT.values()]
    found = engine.function(inputs, outputs)(*values)
    expected = engine.function(inputs, outputs, mode=Mode(optimizer=None))(*values)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", SAME)
def test_a_length_that_does_not_fit_is_still_refused(name):
    f = engine.function([A, a, b, T, S, R, lo], SAME[name][0], on_unused_input="ignore")
    with pytest.raises(ValueError):
        f(np.ones((3, 3)), np.ones(2), np.ones(3), np.ones((2, 3, 3)), np.ones((2, 2)), np.ones((2, 3)), 0)
