"""Gradients of solutions for the parameters of their problems, against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.errors import DisconnectedInputError
from engine.scanning import scan
from engine.tensor.optimize import minimize, minimize_scalar, root, root_scalar
from tests.engine.inner.solved import every_mode

pytestmark = pytest.mark.usefixtures("kernels_once")

TIGHT = {"tol": 1e-12}
CLOSE = {"abs_tol": 1e-5, "rel_tol": 1e-5}


def convex(v: Any, target: Any, weight: Any) -> Any:
    return pt.sum((v - target) ** 4 / 12.0 + weight * (v - target) ** 2) + pt.sum(v) ** 2


@pytest.mark.parametrize("method", ["BFGS", "Nelder-Mead", "trust-exact"])
def test_of_a_minimum_whichever_method_found_it(method):
    """The derivatives that the gradient needs are not those that the method uses."""

    def solution(target: Any, weight: Any) -> Any:
        options = {"options": {"xatol": 1e-12, "fatol": 1e-16}} if method == "Nelder-Mead" else TIGHT
        v = pt.zeros_like(target)
        return minimize(
            convex(v, target, weight), v, method, hess=method == "trust-exact", optimizer_kwargs=options
        )[0]

    verify_grad(solution, [np.array([1.0, -0.5]), np.array(1.5)], abs_tol=1e-3, rel_tol=1e-3)


@pytest.mark.parametrize(
    "solution",
    [
        lambda a, b: _of(
            a, lambda x: minimize(pt.exp(x * b[0]) - a * x * pt.sum(b), x, optimizer_kwargs=TIGHT)
        ),
        lambda a, b: _of(a, lambda x: root(x**3 + a * x - pt.sum(b * b), x)),
        lambda a, b: _of(a, lambda x: root_scalar(x**3 + a * x - pt.sum(b * b), x, "newton", jac=True)),
        lambda a, b: _of(
            a, lambda x: root_scalar(x**3 + a * x - b[1], x, "brentq", bracket=[0.0, 9.0 + 0.0 * a])
        ),
    ],
)
def test_of_a_number(solution: Callable[[Any, Any], Any]):
    verify_grad(solution, [np.array(1.3), np.array([0.7, 1.1])], **CLOSE)


def _of(like: Any, problem: Callable[[Any], tuple[Any, Any]]) -> Any:
    return problem(pt.ones_like(like))[0]


def test_of_a_number_that_is_found_as_closely_as_differences_allow():
    """Without derivatives a minimum is found to the root of the precision only."""
    verify_grad(
        lambda a, b: _of(a, lambda x: minimize_scalar(pt.exp(x * b[0]) - a * x * pt.sum(b), x)),
        [np.array(1.3), np.array([0.7, 1.1])],
        eps=1e-3,
        abs_tol=1e-3,
        rel_tol=1e-3,
    )


def test_for_a_parameter_that_is_a_number():
    x, theta = pt.scalar("x"), pt.scalar("theta")
    number = pt.scalar_from_tensor(theta) ** 2
    difference = pt.tensor_from_scalar(pt.scalar_from_tensor(x) - number)
    for solution in (minimize(difference**2, x), minimize_scalar(difference**2, x), root(difference, x)):
        assert solution[0].owner.inputs[1].owner.inputs == [number]
        found = engine.function([x, theta], [solution[0], engine.grad(solution[0], theta)])(0.0, 3.0)
        np.testing.assert_allclose(found, [9.0, 6.0], rtol=1e-6)


def test_of_a_system_for_parameters_of_every_rank():
    def solution(matrix: Any, vector: Any, number: Any) -> Any:
        x = pt.ones_like(vector)
        return root(pt.dot(matrix, x) + number * x**3 - vector, x, optimizer_kwargs=TIGHT)[0]

    random = np.random.default_rng(3)
    matrix = 3 * np.eye(4) + random.normal(size=(4, 4))
    verify_grad(solution, [matrix, random.normal(size=4), np.array(0.3)], **CLOSE)


def test_of_several_unknowns():
    def solution(target: Any) -> Any:
        m, s = pt.zeros_like(target), pt.ones_like(pt.sum(target))
        solved_m, solved_s = minimize(
            pt.sum((m - target * s) ** 2) + (s - 2.0) ** 2 + pt.sum(m) ** 2, [m, s], optimizer_kwargs=TIGHT
        )[0]
        return solved_m * solved_s

    verify_grad(solution, [np.arange(6.0).reshape(2, 3) / 6], abs_tol=1e-4, rel_tol=1e-4)


def test_of_a_compiled_function_of_any_length():
    v, target, weight = pt.vector("v"), pt.vector("target"), pt.scalar("weight")
    solution, _ = minimize(
        convex(v, target, weight), v, method="trust-exact", hess=True, optimizer_kwargs={"tol": 1e-9}
    )
    outputs = [solution, *engine.grad(pt.sum(solution**2), [target, weight])]
    compiled, reference = every_mode([v, target, weight], outputs)
    for length in (1, 2, 20):
        arguments = (np.zeros(length), np.linspace(-1.0, 2.0, length), 1.5)
        found, of_target, of_weight = compiled(*arguments)
        for one, other in zip((found, of_target, of_weight), reference(*arguments), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
        step = 1e-5
        more, less = (compiled(*arguments[:2], 1.5 + s)[0] for s in (step, -step))
        np.testing.assert_allclose(of_weight, np.sum(more**2 - less**2) / (2 * step), rtol=1e-3, atol=1e-6)


def test_a_second_gradient():
    x, a = pt.scalar("x"), pt.scalar("a")
    solution, _ = minimize(pt.exp(x) - a * x, x, optimizer_kwargs=TIGHT)
    first = engine.grad(solution, a)
    for f in every_mode([x, a], [solution, first, engine.grad(first, a)]):
        np.testing.assert_allclose(f(0.0, 2.0), [np.log(2.0), 0.5, -0.25], rtol=1e-6)


def test_none_flows_to_where_a_solver_starts():
    x, a = pt.scalar("x"), pt.scalar("a")
    for solution, _ in (minimize((x - a) ** 2, x), root(x - a, x)):
        f = engine.function([x, a], engine.grad(solution, [x, a]), on_unused_input="ignore")
        np.testing.assert_allclose(f(5.0, 1.0), [0.0, 1.0])


def test_none_flows_through_success_or_to_a_limit():
    x, a = pt.scalar("x"), pt.scalar("a")
    solution, success = root_scalar(x - 1.0, x, "brentq", bracket=[0.0, a])
    with pytest.raises(DisconnectedInputError):
        engine.grad(solution, a)
    with pytest.raises(DisconnectedInputError):
        engine.grad(pt.cast(success, "float64"), x)
    assert solution.owner.op.connection_pattern(solution.owner) == [[True, False], [False, False]]


def test_what_only_shifts_the_objective_is_not_connected():
    x, a, b = pt.scalar("x"), pt.scalar("a"), pt.scalar("b")
    solution, _ = minimize((x - a) ** 2 + b, x)
    gradient = engine.grad(solution, [a, b], disconnected_inputs="ignore")
    np.testing.assert_allclose(
        engine.function([x, a, b], gradient, on_unused_input="ignore")(0.0, 1.0, 2.0), [1.0, 0.0]
    )
    with pytest.raises(DisconnectedInputError):
        engine.grad(solution, b)


def test_the_sum_of_a_parameter_inside_and_of_what_is_computed_from_it_outside():
    x, a = pt.scalar("x"), pt.scalar("a")
    solution, _ = root(x - pt.exp(a) - a * x / 2.0, x)
    f = engine.function([x, a], [solution, engine.grad(solution, a)])
    # x = exp(a) / (1 - a / 2)
    due = np.exp(0.5) / 0.75
    np.testing.assert_allclose(f(0.0, 0.5), [due, due + np.exp(0.5) * 0.5 / 0.75**2], rtol=1e-6)


def test_through_an_op_that_holds_a_graph_indexing_and_products():
    def solution(weights: Any, rows: Any) -> Any:
        hidden, given = pt.vector("hidden"), pt.matrix("given")
        layer = engine.OpFromGraph([hidden, given], [pt.tanh(pt.dot(given, hidden)) + hidden])
        v = pt.zeros_like(weights[0])
        residual = layer(v, weights)[::-1] - rows[pt.constant([1, 0, 1])]
        return minimize(pt.sum(residual**2) + 0.1 * pt.sum(v**2), v, optimizer_kwargs=TIGHT)[0]

    random = np.random.default_rng(1)
    verify_grad(
        solution, [0.3 * random.normal(size=(3, 3)), random.normal(size=2)], abs_tol=1e-4, rel_tol=1e-4
    )


def test_through_the_steps_of_a_loop_that_solve():
    def states(targets: Any, weight: Any) -> Any:
        def step(target: Any, before: Any) -> Any:
            solved, _ = root_scalar(before**3 + weight * before - target, before, "newton", jac=True)
            return solved + 0.1 * before

        return scan(step, sequences=targets, outputs_info=pt.constant(1.0))[0]

    verify_grad(states, [np.array([8.0, 27.0, 1.0]), np.array(0.5)], **CLOSE)
    targets, weight = pt.vector("targets"), pt.scalar("weight")
    cost = pt.sum(states(targets, weight) ** 2)
    compiled, reference = every_mode([targets, weight], [cost, *engine.grad(cost, [targets, weight])])
    arguments = np.array([8.0, 27.0, 1.0]), 0.5
    for found, due in zip(compiled(*arguments), reference(*arguments), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-8)


def test_jacobians_and_tangents():
    x, target = pt.vector("x"), pt.vector("target")
    solution, _ = root(x**3 + pt.sum(x) - target, x, optimizer_kwargs=TIGHT)
    jacobian = engine.gradient.jacobian(solution, target)
    tangent = engine.gradient.Rop(solution, target, pt.ones_like(target))
    f = engine.function([x, target], [solution, jacobian, tangent])
    solved, rows, along = f(np.ones(3), np.array([8.0, 27.0, 1.0]))
    np.testing.assert_allclose(rows, np.linalg.inv(np.diag(3 * solved**2) + 1.0), rtol=1e-6)
    np.testing.assert_allclose(along, rows.sum(axis=1), rtol=1e-6)


def negative_log_likelihood(parameters: Any, observed: Any) -> Any:
    """Of a local level observed with noise; the logarithms of the variances of its steps and of the noise are the
    parameters."""
    steps, noise = pt.exp(parameters[0]), pt.exp(parameters[1])

    def update(y: Any, level: Any, variance: Any) -> tuple[Any, Any, Any]:
        variance = variance + steps
        error, spread = y - level, variance + noise
        gain = variance / spread
        return level + gain * error, variance * (1.0 - gain), pt.log(spread) + error**2 / spread

    (_, _, terms), _ = scan(
        update, sequences=observed, outputs_info=[pt.constant(0.0), pt.constant(1e4), None]
    )
    return 0.5 * pt.sum(terms[1:])


def test_maximum_likelihood_of_a_filter_and_how_it_moves_with_the_data():
    from scipy import optimize

    random = np.random.default_rng(0)
    data = np.cumsum(0.7 * random.normal(size=60)) + 1.3 * random.normal(size=60)

    def of_numpy(parameters: np.ndarray) -> float:
        steps, noise = np.exp(parameters)
        level, variance, total = 0.0, 1e4, 0.0
        for k, y in enumerate(data):
            variance += steps
            error, spread = y - level, variance + noise
            gain = variance / spread
            level, variance = level + gain * error, variance * (1 - gain)
            total += 0.5 * (np.log(spread) + error**2 / spread) if k else 0.0
        return total

    parameters, observed = pt.vector("parameters"), pt.vector("observed")
    solution, success = minimize(
        negative_log_likelihood(parameters, observed),
        parameters,
        "trust-exact",
        hess=True,
        optimizer_kwargs={"tol": 1e-6},
    )
    moved = engine.grad(pt.sum(solution * [1.0, 2.0]), observed)
    f = engine.function([parameters, observed], [solution, success, moved])
    found, is_found, of_data = f(np.zeros(2), data)
    assert is_found
    np.testing.assert_allclose(found, optimize.minimize(of_numpy, np.zeros(2), tol=1e-7).x, atol=1e-4)
    for position in (0, 7, 59):
        step = np.zeros(60)
        step[position] = 1e-3
        ends = [f(np.zeros(2), data + s)[0] @ [1.0, 2.0] for s in (step, -step)]
        np.testing.assert_allclose(of_data[position], (ends[0] - ends[1]) / 2e-3, rtol=1e-3, atol=1e-5)
