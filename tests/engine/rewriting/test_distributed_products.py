import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph
from engine.rewriting.walking import out2in
from engine.tensor.rewriting.math import local_greedy_distributor

VALUES = [np.array([0.5, -2.0, 7.0]), np.array([1.5, 3.0, -0.25]), np.array([-4.0, 0.125, 2.0])]


def spread(output):
    return rewrite_graph(output, include=(), custom_rewrite=out2in(local_greedy_distributor))


@pytest.mark.parametrize(
    ("build", "due"),
    [
        (lambda a, x, y: (a / x + a / y) * x * y, lambda a, x, y: a * y + a * x),
        (lambda a, x, y: (a / x - y) * x, lambda a, x, y: a - y * x),
        (lambda a, x, y: y / ((a / x + y) * x), lambda a, x, y: y / (a + y * x)),
        (lambda a, x, y: (a + (y / x + 1.0)) * x, lambda a, x, y: a * x + (y + 1.0 * x)),
    ],
)
def test_what_divides_a_term_is_multiplied_into_the_sum(build, due):
    named = [pt.dvector(name) for name in "axy"]
    found = spread(build(*named))
    np.testing.assert_allclose(
        engine.function(named, found)(*VALUES), engine.function(named, build(*named))(*VALUES), rtol=1e-13
    )
    assert equal_computations([rewrite_graph(found)], [rewrite_graph(due(*named))])


def test_other_products_of_sums_stay():
    a, x, n = pt.dvector("a"), pt.dvector("x"), pt.lvector("n")
    for kept in ((a + x) * a, (a / x + 1.0) * a, (n + 1) * n, (a / x + np.inf) * 0.0 * x, a * x):
        assert spread(kept) is kept
    written = (a / x + 1.0) * x
    assert equal_computations([rewrite_graph(written, include=("fast_run",), exclude=("fusion",))], [written])
