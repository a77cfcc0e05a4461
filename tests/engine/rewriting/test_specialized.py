import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import equal_computations
from engine.rewriting import rewrite_graph

X, Y = np.array([0.5, -1.5, 300.0]), np.array([2.0, -0.25, 1e-3])
FORMS = [
    (lambda x, y: y / pt.exp(x), lambda x, y: y * pt.exp(-x)),
    (lambda x, y: pt.log(x / 3.0), lambda x, y: pt.log(x) - np.log([3.0])),
]


@pytest.mark.parametrize(("build", "due"), FORMS)
def test_the_set_specialize_writes_quotients_apart(build, due):
    x, y = pt.dvector("x"), pt.dvector("y")
    found = rewrite_graph(build(x, y), include=("specialize",))
    assert equal_computations([found], [due(x, y)])
    with np.errstate(invalid="ignore"):
        before, after = (
            engine.function([x, y], v, mode="NUMPY", on_unused_input="ignore")(X, Y)
            for v in (build(x, y), found)
        )
    np.testing.assert_allclose(after, before, rtol=1e-13)


@pytest.mark.parametrize(("build", "due"), FORMS)
def test_canonical_forms_and_functions_keep_quotients(build, due):
    x, y = pt.dvector("x"), pt.dvector("y")
    quotient = build(x, y)
    for names in (("canonicalize", "stabilize"), ("fast_run",)):
        found = rewrite_graph(quotient, include=names, exclude=("fusion", "inplace"))
        assert equal_computations([found], [quotient])


@pytest.mark.parametrize("number", [0.0, -3.0, np.inf, np.nan])
def test_the_logarithm_of_a_number_that_has_none_is_not_taken(number):
    x = pt.dvector("x")
    quotient = pt.log(x / number)
    assert equal_computations([rewrite_graph(quotient, include=("specialize",))], [quotient])
