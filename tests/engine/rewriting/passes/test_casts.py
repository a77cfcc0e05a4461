import numpy as np
import pytest

import engine.tensor as pt

P, X = np.array([True, False]), np.array([2.5, np.inf])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [0, 1, -1, 1000])
@pytest.mark.parametrize("order", [lambda n, p: n - p, lambda n, p: p - n, lambda n, p: n + p])
def test_a_mask_and_what_is_left_of_a_number_are_one_cast(rewritten, dtype, number, order):
    p = pt.vector("p", dtype="bool")
    graph = rewritten(p, [pt.cast(order(np.int64(number), p), dtype), pt.cast(p, dtype)])
    assert graph.check_values(P, exact=True).ops.count(f"cast_{dtype}") <= 1


def test_a_complement_beside_floats_is_of_floats(rewritten):
    p, x = pt.vector("p", dtype="bool"), pt.dvector("x")
    graph = rewritten([p, x], pt.cast(1 - p, "float64") * x)
    assert all(v.type.dtype != "int64" for v in graph.fgraph.variables)
    graph.check_values(P, X, exact=True)
    graph.check_values(~P, -X, exact=True)


@pytest.mark.parametrize(
    "build",
    [
        lambda p: pt.cast(np.uint8(0) - p, "float64"),
        lambda p: pt.cast(np.int8(127) + p, "float64"),
        lambda p: pt.cast(np.int64(2**53) + p, "float32"),
        lambda p: pt.cast(np.int64(1) - p, "int32"),
    ],
)
def test_a_sum_that_wraps_or_is_no_float_is_made_first(rewritten, build):
    p = pt.vector("p", dtype="bool")
    graph = rewritten(p, build(p)).check_values(P, exact=True)
    assert graph.applied.get("local_cast_of_truth_sum", 0) == 0


def test_a_sum_that_is_read_elsewhere_is_made_once(rewritten):
    p = pt.vector("p", dtype="bool")
    left = np.int64(1) - p
    graph = rewritten(p, [left, pt.cast(left, "float64")]).check_values(P, exact=True)
    assert graph.ops.count("sub") == 1
