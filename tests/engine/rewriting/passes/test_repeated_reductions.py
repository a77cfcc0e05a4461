import numpy as np
import pytest

import engine.tensor as pt

X = np.arange(6.0).reshape(2, 3) - 2.25
WHOLE = {"Sum", "Prod", "Max", "Min", "All", "Any", "Alloc"}


def kinds(graph):
    return {op.split("{")[0] for op in graph.ops} & WHOLE


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.max, pt.min])
def test_a_repeated_number_is_not_read_again_and_again(rewritten, dtype, reduce):
    a = pt.scalar("a", dtype=dtype)
    graph = rewritten(a, reduce(pt.alloc(a, 2, 3))).check_values(np.array(1.5, dtype))
    assert kinds(graph) == set()


@pytest.mark.parametrize("reduce", [pt.all, pt.any])
@pytest.mark.parametrize("value", [True, False])
def test_a_repeated_truth_value_is_itself(rewritten, reduce, value):
    p = pt.scalar("p", dtype="bool")
    assert kinds(rewritten(p, reduce(pt.alloc(p, 4))).check_values(np.array(value))) == set()


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.max, pt.min])
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_what_is_repeated_is_reduced_once(rewritten, reduce, axis):
    x = pt.dmatrix("x")
    repeated = pt.alloc(x[:, None], x.shape[0], 4, x.shape[1])
    graph = rewritten(x, reduce(repeated, axis=axis)).check_values(X)
    left = {"Alloc"} if axis in (0, 2, (0, 2)) else set()
    assert kinds(graph) - {"Sum", "Prod", "Max", "Min"} == left


def test_a_row_that_stays_is_repeated_after_it_is_reduced(rewritten):
    v = pt.tensor("v", dtype="float64", shape=(3,))
    graph = rewritten(v, pt.sum(pt.alloc(v, 4, 6, 3), axis=1)).check_values(X[0])
    assert graph.ops[-1] == "Alloc"
    assert "Sum" not in kinds(graph)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -0.0, 1e308])
@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.max])
def test_unusual_numbers_stay_what_they_are(rewritten, reduce, value):
    a = pt.dscalar("a")
    rewritten(a, reduce(pt.alloc(a, 3))).check_values(np.array(value))


def test_a_count_is_no_number_of_a_narrow_dtype(rewritten):
    a = pt.scalar("a", dtype="float16")
    graph = rewritten(a, pt.sum(pt.alloc(a, 100_000)))
    assert graph.evaluate(np.array(0.001, "float16")) == np.float16(100_000 * float(np.float16(0.001)))


def test_reductions_that_may_be_of_nothing_stay(rewritten):
    a, n = pt.dscalar("a"), pt.lscalar("n")
    graph = rewritten([a, n], pt.sum(pt.alloc(a, n))).check_values(np.array(np.inf), np.array(0))
    assert kinds(graph) == {"Sum", "Alloc"}
    rewritten(a, pt.sum(pt.alloc(a, 0, 3), axis=0)).check_values(np.array(np.nan))


def test_whole_numbers_wrap_as_they_did(rewritten):
    i = pt.lscalar("i")
    graph = rewritten(i, pt.sum(pt.alloc(i, 5))).check_values(np.array(2**62))
    assert "Sum" in kinds(graph)


def test_lengths_that_an_alloc_compares_are_compared_still(rewritten):
    v = pt.dvector("v")
    graph = rewritten(v, pt.sum(pt.alloc(v, 4, 3))).check_values(X[0])
    assert kinds(graph) == {"Sum", "Alloc"}
