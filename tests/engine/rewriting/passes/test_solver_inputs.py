"""Solvers have no inputs that are constants or given twice."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.tensor.optimize import MinimizeOp, MinimizeScalarOp, RootOp, RootScalarOp, ScipyWrapperOp

KINDS = [
    (MinimizeOp, "objective", {"method": "BFGS"}),
    (MinimizeScalarOp, "objective", {"method": "brent"}),
    (RootOp, "equations", {"method": "hybr"}),
    (RootScalarOp, "equation", {"method": "newton", "jac": True}),
]


def solver_inputs(function):
    (node,) = [node for node in function.maker.fgraph.apply_nodes if isinstance(node.op, ScipyWrapperOp)]
    return node.inputs


@pytest.mark.parametrize(("kind", "role", "how"), KINDS)
def test_constants_are_parts_of_the_objective_and_a_variable_is_given_once(kind, role, how):
    x, a, b, c, d = pt.dscalars("x", "a", "b", "c", "d")
    distance = 2 * x - a * b - c * d
    op = kind(x, a, b, c, d, **{role: distance**2 if role == "objective" else distance}, **how)
    given, two = pt.dscalar("given"), pt.constant(2.0)
    solution, success = op(x, given, two, given, two)
    function = engine.function([x, given], [solution, success, engine.grad(solution, given)])
    assert len(solver_inputs(function)) == 2
    found, is_found, slope = function(0.5, 3.0)
    assert is_found
    np.testing.assert_allclose([found, slope], [6.0, 2.0], 1e-6)


def test_large_data_stays_an_input():
    x, weights = pt.dscalar("x"), pt.dvector("weights")
    op = MinimizeOp(x, weights, objective=pt.sum((x - weights) ** 2), method="BFGS")
    data = np.arange(100_000, dtype="float64")
    function = engine.function([x], op(x, pt.constant(data))[0])
    assert len(solver_inputs(function)) == 2
    np.testing.assert_allclose(function(0.0), data.mean())


def test_a_constant_of_a_wider_parameter_stays_an_input():
    x, weights = pt.dscalar("x"), pt.dvector("weights")
    op = MinimizeOp(x, weights, objective=pt.sum((x - weights) ** 2), method="BFGS")
    function = engine.function([x], op(x, pt.constant([1.0, 3.0]))[0])
    assert len(solver_inputs(function)) == 2
    np.testing.assert_allclose(function(0.0), 2.0)


def test_a_bracket_stays_an_input():
    x, a, b = pt.dscalars("x", "a", "b")
    op = RootScalarOp(x, a, b, equation=x - a * b, method="brentq", limits=("bracket",))
    given = pt.dscalar("given")
    function = engine.function([x, given], op(x, given, given, pt.constant([0.0, 20.0]))[0])
    assert len(solver_inputs(function)) == 3
    np.testing.assert_allclose(function(0.0, 3.0), 9.0)
