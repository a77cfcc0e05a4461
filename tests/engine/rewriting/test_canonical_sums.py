import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph
from engine.rewriting.walking import in2out
from engine.tensor.rewriting.math import local_add_canonizer

X, Y = np.array([1.5, -2.0, np.inf, np.nan]), np.array([3.0, 0.75, -np.inf, 1.0])


def as_terms(output):
    return rewrite_graph(output, include=(), custom_rewrite=in2out(local_add_canonizer))


@pytest.mark.parametrize(
    ("build", "due"),
    [
        (lambda x, y: x + 1.0 - (y - 2.0), lambda x, y: [3.0] + x - y),
        (lambda x, y: pt.add(0.0, x, y), lambda x, y: x + y),
        (lambda x, y: 1.0 - (1.0 + x) - y, lambda x, y: -x - y),
        (lambda x, y: x - (y - x), lambda x, y: x + x - y),
        (lambda x, y: (x + y) - x, lambda x, y: x + y - x),
        (lambda x, y: pt.exp(x + 0.0) + 1.0 + 1.0, lambda x, y: [2.0] + pt.exp(x)),
    ],
)
def test_a_sum_is_a_number_and_terms(build, due):
    named = pt.dvector("x"), pt.dvector("y")
    found = as_terms(build(*named))
    assert equal_computations([found], [pt.as_tensor_variable(due(*named))])
    before, after = (
        engine.function(named, v, mode="NUMPY", on_unused_input="ignore")(X, Y)
        for v in (build(*named), found)
    )
    np.testing.assert_allclose(after, before, rtol=1e-14)


def test_whole_numbers_and_infinite_ones_stay():
    n, x = pt.lvector("n"), pt.dvector("x")
    for kept in (n + 1 + n + 2, x + np.inf + 1.0, (1e308 + x) + 1e308, x - x):
        assert as_terms(kept) is kept


def test_what_is_left_out_has_a_part_in_the_shape_still():
    x = pt.dvector("x")
    found = engine.function([x], as_terms(x + np.full((2, 3), 2.0)))
    np.testing.assert_array_equal(found(X[:3]), [X[:3] + 2.0] * 2)
