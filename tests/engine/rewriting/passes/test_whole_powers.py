import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.inner.composite import Composite
from engine.rewriting import DEFAULT_QUERY

UNFUSED = DEFAULT_QUERY.excluding("fusion", "local_second_to_alloc")
VALUES = np.array([0.0, -0.0, 1.0, -1.0, 0.75, -1.5, 300.0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("exponent", [*range(3, 17), *range(-16, -1)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_powers_with_small_whole_exponents_are_products(dtype, exponent):
    x = pt.vector("x", dtype=dtype)
    function = engine.function([x], x**exponent)
    is_product = exponent > 0 or dtype == "float64"
    assert any("pow" in str(node.op) for node in function.maker.fgraph.apply_nodes) != is_product
    values = VALUES.astype(dtype)
    with np.errstate(all="ignore"):
        due = np.asarray(values.astype("longdouble") ** exponent, dtype)
    found = function(values)
    np.testing.assert_allclose(found, due, rtol=10 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(due[:-1]))


@pytest.mark.parametrize(("exponent", "operations"), [(3, 2), (15, 6), (16, 4), (-16, 4)])
def test_a_power_is_one_loop_of_few_operations(rewritten, exponent, operations):
    x = pt.dvector("x")
    graph = rewritten(x, x**exponent, query=UNFUSED)
    (op,) = [n.op.scalar_op for n in graph.fgraph.apply_nodes if isinstance(n.op.scalar_op, Composite)]
    assert len(op.fgraph.nodes) == operations
    assert len(graph.ops) == 1 + (exponent < 0)


def test_other_powers_stay(rewritten):
    x, y, n = pt.dvector("x"), pt.dvector("y"), pt.lvector("n")
    for power in (x**17, x**-17, x**2.5, x**y, x**np.nan, pt.pow(2.0, x), n**3):
        assert "pow" in rewritten([x, y, n], power, query=UNFUSED).ops


def test_a_power_is_in_the_loop_of_what_reads_it():
    x = pt.dvector("x")
    function = engine.function([x], pt.sum(pt.exp(-(x**4)) * x))
    assert len(function.maker.fgraph.apply_nodes) <= 2
    np.testing.assert_allclose(
        function([0.5, -1.25]), np.sum(np.exp(-(np.array([0.5, -1.25]) ** 4)) * [0.5, -1.25])
    )
