"""`minimize`, `root` and their scalar forms: SciPy's solvers as parts of a graph."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import optimize as scipy_optimize

import engine
import engine.tensor as pt
from engine.graph import Constant
from engine.inner.optimize_ops import MinimizeOp, MinimizeScalarOp, RootOp, RootScalarOp
from engine.inner.solvers import _METHODS, canonical_options
from engine.lowering.rules.callbacks import RULES as LOWERED
from engine.tensor.optimize import minimize, minimize_scalar, root, root_scalar
from tests.engine.inner.solved import every_mode

pytestmark = pytest.mark.usefixtures("kernels_once")


def rosenbrock(x: Any, scale: Any = 10.0) -> Any:
    return pt.sum(scale * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_of_numpy(x: np.ndarray, scale: float = 10.0) -> Any:
    return np.sum(scale * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


WITH_GRADIENT = ("CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP")
WITH_HESSIAN = ("Newton-CG", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr")
WITHOUT = ("Nelder-Mead", "Powell", "COBYLA", "COBYQA")


@pytest.mark.parametrize(
    ("method", "hess"),
    [
        *((m, False) for m in WITH_GRADIENT),
        *((m, True) for m in WITH_HESSIAN),
        *((m, False) for m in WITHOUT),
    ],
)
def test_the_minimum_of_a_vector_by_every_method(method, hess):
    x = pt.vector("x")
    # COBYLA takes thousands of steps along Rosenbrock's valley.
    objective = pt.sum(pt.exp(x - 1) - x) if method == "COBYLA" else rosenbrock(x)
    solution, success = minimize(objective, x, method=method, hess=hess)
    start = np.array([0.8, 1.2, 0.9])
    for f in every_mode([x], [solution, success]):
        found, is_found = f(start)
        np.testing.assert_allclose(found, np.ones(3), atol=2e-3)
        assert is_found.dtype == bool
        assert is_found.ndim == 0
        assert is_found


def test_a_solution_is_what_scipy_finds_outside():
    x, scale = pt.vector("x"), pt.scalar("scale")
    solution, _ = minimize(rosenbrock(x, scale), x)
    start = np.array([-1.0, 2.0, 0.5, 0.1])
    gradient = engine.function([x, scale], engine.grad(rosenbrock(x, scale), x))
    due = scipy_optimize.minimize(
        rosenbrock_of_numpy, start, args=(7.0,), jac=lambda x, scale: gradient(x, scale), method="BFGS"
    )
    np.testing.assert_allclose(engine.function([x, scale], solution)(start, 7.0), due.x, rtol=1e-6)


def test_a_number_is_an_unknown_too():
    x, a = pt.scalar("x"), pt.scalar("a")
    for method, hess in (("BFGS", False), ("trust-exact", True), ("Nelder-Mead", False)):
        solution, success = minimize(pt.exp(x) - a * x, x, method=method, hess=hess)
        for f in every_mode([x, a], [solution, success]):
            found, is_found = f(0.0, 3.0)
            assert found.shape == ()
            np.testing.assert_allclose(found, np.log(3.0), atol=1e-4)
            assert is_found


def test_several_unknowns_of_any_rank_are_solved_for_together():
    m, v, s, target = pt.matrix("m"), pt.fvector("v"), pt.scalar("s"), pt.scalar("target")
    objective = pt.sum((m - target) ** 2) + pt.sum((v - s) ** 2) + (s - pt.sum(m)) ** 2
    (solved_m, solved_v, solved_s), success = minimize(objective, [m, v, s])
    for f in every_mode([m, v, s, target], [solved_m, solved_v, solved_s, success]):
        found_m, found_v, found_s, is_found = f(np.zeros((2, 3)), np.zeros(2, "float32"), 1.0, 0.5)
        np.testing.assert_allclose(found_m, np.full((2, 3), 0.5), atol=1e-4)
        assert found_v.dtype == np.float32
        np.testing.assert_allclose(found_v, [3.0, 3.0], atol=1e-3)
        np.testing.assert_allclose(found_s, 3.0, atol=1e-4)
        assert is_found


def test_a_matrix_comes_back_as_a_matrix():
    m = pt.tensor("m", shape=(2, 2))
    solution, _ = minimize(pt.sum((m - [[1.0, 2.0], [3.0, 4.0]]) ** 2), m)
    assert solution.type == m.type
    for f in every_mode([m], [solution]):
        np.testing.assert_allclose(f(np.zeros((2, 2)))[0], [[1.0, 2.0], [3.0, 4.0]], atol=1e-5)


@pytest.mark.parametrize("method", ["brent", "golden", "bounded"])
def test_the_minimum_of_a_number_in_an_interval(method):
    x, a = pt.scalar("x"), pt.scalar("a")
    limits = {"bounds": (0.0, 2 * a)} if method == "bounded" else {"bracket": pt.stack([-a, a])}
    solution, success = minimize_scalar((x - a) ** 2 + pt.exp(x), x, method=method, **limits)
    due = scipy_optimize.minimize_scalar(lambda x: (x - 3.0) ** 2 + np.exp(x)).x
    for f in every_mode([x, a], [solution, success]):
        found, is_found = f(99.0, 3.0)
        np.testing.assert_allclose(found, due, atol=1e-4)
        assert is_found


def test_an_interval_may_follow_from_what_is_computed():
    a = pt.scalar("a")
    x = pt.scalar("x")
    solution, _ = minimize_scalar(-x * a, x, method="bounded", bounds=[0.0, pt.exp(a)])
    f = engine.function([a, x], solution)
    np.testing.assert_allclose(f(1.0, 0.0), np.e, atol=1e-4)
    np.testing.assert_allclose(f(2.0, 0.0), np.exp(2), atol=1e-4)


@pytest.mark.parametrize(
    ("method", "jac"),
    [
        ("hybr", True),
        ("hybr", False),
        ("lm", True),
        ("lm", False),
        ("broyden1", False),
        ("krylov", True),
        ("df-sane", True),
    ],
)
def test_the_root_of_a_system_by_every_family_of_methods(method, jac):
    x, a = pt.vector("x"), pt.scalar("a")
    equations = pt.stack([x[0] + 0.5 * pt.sin(x[1]) - a, x[1] - 0.5 * pt.cos(x[0])])
    solution, success = root(equations, x, method=method, jac=jac)
    due = scipy_optimize.root(
        lambda x: [x[0] + 0.5 * np.sin(x[1]) - 0.3, x[1] - 0.5 * np.cos(x[0])], [0.0, 0.0]
    ).x
    for f in every_mode([x, a], [solution, success]):
        found, is_found = f(np.zeros(2), 0.3)
        np.testing.assert_allclose(found, due, atol=1e-5)
        assert is_found


def test_the_root_of_one_equation_as_a_system():
    x, a = pt.scalar("x"), pt.scalar("a")
    solution, success = root(x**3 - a, x)
    for f in every_mode([x, a], [solution, success]):
        found, is_found = f(1.0, 8.0)
        assert found.shape == ()
        np.testing.assert_allclose(found, 2.0)
        assert is_found


@pytest.mark.parametrize("method", list(_METHODS["root_scalar"]))
def test_the_root_of_a_number_by_every_method(method):
    x, a = pt.scalar("x"), pt.scalar("a")
    needs_bracket = _METHODS["root_scalar"][method].limit
    options = {"bracket": [0.0, a]} if needs_bracket else {"jac": True, "hess": True}
    solution, success = root_scalar(x**3 - a, x, method=method, **options)
    for f in every_mode([x, a], [solution, success]):
        found, is_found = f(1.5, 8.0)
        np.testing.assert_allclose(found, 2.0)
        assert is_found


def test_float32_stays_float32():
    x, a = pt.fvector("x"), pt.fscalar("a")
    solution, _ = minimize(pt.sum((x - a) ** 2), x, optimizer_kwargs={"tol": 1e-3})
    assert solution.type == x.type
    for f in every_mode([x, a], [solution]):
        found = f(np.zeros(2, "float32"), np.float32(2.0))[0]
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [2.0, 2.0], atol=1e-2)


def test_options_reach_the_solver():
    x = pt.vector("x")
    start = np.array([-1.0, 2.0])
    bounded, _ = minimize(
        rosenbrock(x),
        x,
        method="L-BFGS-B",
        optimizer_kwargs={"bounds": [(0.0, 0.5), (None, 2.0)], "tol": 1e-9},
    )
    cut_short, success = minimize(rosenbrock(x), x, optimizer_kwargs={"options": {"maxiter": 2}})
    for f in every_mode([x], [bounded, cut_short, success]):
        found, stopped, is_found = f(start)
        np.testing.assert_allclose(found, [0.5, 0.25], atol=1e-6)
        assert not is_found
        due = scipy_optimize.minimize(
            rosenbrock_of_numpy, start, jac=scipy_gradient, method="BFGS", options={"maxiter": 2}
        )
        np.testing.assert_allclose(stopped, due.x, rtol=1e-6)


def scipy_gradient(x: np.ndarray) -> np.ndarray:
    slope = -2 * 10.0 * 2 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0])
    return np.array([slope, 2 * 10.0 * (x[1] - x[0] ** 2)])


@pytest.mark.parametrize(
    "problem",
    [
        lambda x: minimize(pt.log(x), x, method="BFGS"),
        lambda x: minimize(pt.log(x), x, method="Nelder-Mead"),
        lambda x: minimize(pt.log(x - 5.0), x, method="trust-exact", hess=True),
        lambda x: minimize_scalar(pt.sqrt(x - 1e9), x),
        lambda x: root(pt.sqrt(x) + 1.0, x),
        lambda x: root_scalar(pt.sqrt(x) + 1.0, x, method="newton", jac=True),
        lambda x: root_scalar(x**2 + 1.0, x, method="brentq", bracket=[0.0, 1.0]),
        lambda x: root_scalar(pt.log(x - 3.0), x, method="bisect", bracket=[1.0, 2.0]),
        lambda x: root_scalar(x**2 + 1.0, x),
        lambda x: minimize_scalar(x**2, x, bracket=[1.0, 2.0, 3.0]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_solver_that_fails_says_so_and_raises_nothing(problem):
    x = pt.scalar("x")
    solution, success = problem(x)
    for f in every_mode([x], [solution, success]):
        found, is_found = f(1.0)
        assert found.shape == ()
        assert not is_found


def test_a_limit_that_makes_no_sense_is_a_failure_of_the_solver():
    x, bracket = pt.scalar("x"), pt.vector("bracket")
    solution, success = root_scalar(x - 1.0, x, method="brentq", bracket=bracket)
    f = engine.function([x, bracket], [solution, success])
    assert f(0.0, [0.0, 3.0])[1]
    for wrong in ([5.0, 6.0], [np.nan, 2.0], [1.5]):
        assert not f(0.0, wrong)[1]


def test_what_the_objective_raises_comes_through():
    x, y = pt.vector("x"), pt.vector("y")
    solution, _ = minimize(pt.sum((x - y) ** 2), x)
    for f in every_mode([x, y], [solution]):
        with pytest.raises(ValueError, match=r"length|shape|broadcast"):
            f(np.zeros(3), np.zeros(4))
        np.testing.assert_allclose(f(np.zeros(2), np.ones(2))[0], np.ones(2), atol=1e-5)


def test_what_does_not_depend_on_the_unknown_is_computed_outside():
    x, y = pt.vector("x"), pt.vector("y")
    solution, _ = minimize(pt.sum((x - pt.exp(y)) ** 2 * 3.0) + pt.sum(y), x)
    node = solution.owner
    assert [str(v.owner.op) for v in node.inputs[1:]] == ["exp", "Sum{axis=[0]}"]


def test_shared_variables_and_data_are_found():
    data = np.linspace(0.0, 1.0, 100)
    shared = engine.shared(np.array(2.0), name="scale")
    x = pt.scalar("x")
    solution, _ = minimize(pt.sum((x - data * shared) ** 2), x)
    f = engine.function([x], solution)
    np.testing.assert_allclose(f(0.0), 1.0, atol=1e-5)
    shared.set_value(np.array(4.0))
    np.testing.assert_allclose(f(0.0), 2.0, atol=1e-5)


def test_the_numbers_of_data_are_not_identity():
    def problem(data: np.ndarray) -> Any:
        x = pt.scalar("x")
        return engine.function([x], minimize(pt.sum((x - pt.constant(data)) ** 2), x)[0])

    first = problem(np.linspace(0.0, 1.0, 100))
    second = problem(np.linspace(0.0, 3.0, 100))
    assert second.cache_info.outcome == "hit"
    np.testing.assert_allclose([first(0.0), second(0.0)], [0.5, 1.5], atol=1e-5)


def test_a_constant_objective_keeps_its_small_constants():
    x = pt.vector("x")
    solution, _ = minimize(pt.sum((x - pt.constant([1.0, 2.0])) ** 2), x)
    assert not any(isinstance(v, Constant) for v in solution.owner.inputs)
    assert len(solution.owner.inputs) == 1


def test_a_solution_may_be_the_unknown_of_another_problem():
    x, y, a = pt.scalar("x"), pt.scalar("y"), pt.scalar("a")
    inner, _ = root_scalar(y**2 - x, y, method="newton", jac=True)
    outer, success = minimize((inner - a) ** 2, x, method="Nelder-Mead")
    for f in every_mode([x, y, a], [outer, success]):
        found, is_found = f(1.0, 1.0, 3.0)
        np.testing.assert_allclose(found, 9.0, atol=1e-3)
        assert is_found


def test_inside_an_op_that_holds_a_graph():
    x, a = pt.scalar("x"), pt.scalar("a")
    op = engine.OpFromGraph([x, a], [minimize(pt.exp(x) - a * x, x)[0]])
    for f in every_mode([x, a], [op(x, a) + op(x, 2.0 * a)]):
        np.testing.assert_allclose(f(0.0, 3.0)[0], np.log(3.0) + np.log(6.0), atol=1e-4)


def test_inside_a_loop():
    from engine.scanning import scan

    targets, start = pt.vector("targets"), pt.scalar("start")

    def step(target: Any, before: Any) -> Any:
        return root_scalar(before**3 - target, before, method="newton", jac=True)[0]

    found, _ = scan(step, sequences=targets, outputs_info=start)
    for f in every_mode([targets, start], [found]):
        np.testing.assert_allclose(f([8.0, 27.0, 1.0], 1.0)[0], [2.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda x, v: minimize(x**2, x, method="Newton"), ValueError, "method is 'Newton'.*Nelder-Mead"),
        (lambda x, v: minimize(x**2, x, method=None), ValueError, "method is None"),
        (lambda x, v: minimize(x**2, x, method="trust-exact"), ValueError, "needs jac=True and hess=True"),
        (lambda x, v: minimize(x**2, x, method="Newton-CG", jac=False), ValueError, "needs jac=True"),
        (lambda x, v: minimize(x**2, x, jac=False, hess=True), ValueError, "hess=True needs jac=True"),
        (lambda x, v: root_scalar(x**2, x, method="brentq"), ValueError, "needs bracket"),
        (
            lambda x, v: root_scalar(x**2, x, method="halley", jac=True),
            ValueError,
            "needs jac=True and hess=True",
        ),
        (lambda x, v: minimize_scalar(x**2, x, method="bounded"), ValueError, "needs bounds"),
        (lambda x, v: minimize(v * 2.0, v), ValueError, "objective .* has 1 dimensions; 0 are needed"),
        (lambda x, v: root(pt.sum(v), v), ValueError, "has 0 dimensions; 1 are needed"),
        (lambda x, v: root_scalar(v, v), ValueError, "unknown .* has 1 dimensions; 0 are needed"),
        (lambda x, v: root(pt.stack([x, x]), pt.stack([x, x, x])), ValueError, "3 unknowns and 2 equations"),
        (lambda x, v: minimize(1.0, x), ValueError, "does not depend"),
        (lambda x, v: minimize(x**2, 1.0), TypeError, "unknown is 1.0"),
        (lambda x, v: minimize(pt.sum(v), x), ValueError, "does not depend on the unknown"),
        (lambda x, v: minimize(pt.cast(x, "int64"), x), TypeError, "cast it to a float"),
        (
            lambda x, v: minimize(x**2, x, optimizer_kwargs={"callback": print}),
            ValueError,
            "has callback; it may have",
        ),
        (
            lambda x, v: minimize(x**2, x, optimizer_kwargs={"options": {"f": print}}),
            TypeError,
            r"optimizer_kwargs\['options'\]\['f'\]",
        ),
        (lambda x, v: root_scalar(x**2, x, optimizer_kwargs={"bracket": [0, 1]}), ValueError, "has bracket"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused_when_it_is_made(make, kind, words):
    with pytest.raises(kind, match=words):
        make(pt.scalar("x"), pt.vector("v"))


def test_the_case_of_a_method_and_the_order_of_options_do_not_matter():
    x = pt.scalar("x")
    first = minimize(x**2, x, method="bfgs", optimizer_kwargs={"tol": 1e-3, "options": {"a": 1, "b": 2}})[0]
    second = minimize(x**2, x, method="BFGS", optimizer_kwargs={"options": {"b": 2, "a": 1}, "tol": 1e-3})[0]
    assert first.owner.op == second.owner.op


def test_derivatives_that_a_method_does_not_use_are_left_out():
    x = pt.vector("x")
    for method, hess, n_outputs in (("Powell", False, 1), ("BFGS", True, 2), ("trust-exact", True, 3)):
        op = minimize(rosenbrock(x), x, method=method, hess=hess)[0].owner.op
        assert len(op.inner_outputs) == n_outputs


def equations(x: Any) -> Iterator[Any]:
    yield x**2 - 2.0
    yield x**2 - 3.0
    yield x**3 - 2.0


def test_solvers_of_different_problems_are_different_and_equal_ones_are_one():
    x, y = pt.scalar("x"), pt.scalar("y")
    ops = [root(equation, x)[0].owner.op for equation in equations(x)]
    again = [root(equation, y)[0].owner.op for equation in equations(y)]
    assert len({*ops}) == 3
    assert ops == again
    assert (
        len(
            {ops[0], root(x**2 - 2.0, x, jac=False)[0].owner.op, root(x**2 - 2.0, x, method="lm")[0].owner.op}
        )
        == 3
    )
    found = engine.function([x], [root(equation, x)[0] for equation in equations(x)])(1.0)
    np.testing.assert_allclose(found, [2**0.5, 3**0.5, 2 ** (1 / 3)])


def test_a_problem_without_variables_is_solved_when_the_function_is_called():
    x = pt.constant(0.0)
    f = engine.function([], minimize((x - 1.0) ** 2, x)[0])
    assert [type(node.op) for node in f.maker.fgraph.apply_nodes] == [MinimizeOp]
    np.testing.assert_allclose(f(), 1.0, atol=1e-6)


def test_equal_problems_of_one_function_are_solved_once():
    x, a = pt.scalar("x"), pt.scalar("a")
    both = [minimize(pt.exp(x) - a * x, x)[0] for _ in range(2)]
    f = engine.function([x, a], both[0] + both[1])
    assert sum(isinstance(node.op, MinimizeOp) for node in f.maker.fgraph.apply_nodes) == 1
    assert len(f._compiled.runner.program.invocations) == 1


def test_two_methods_for_one_objective_stay_two():
    x = pt.vector("x")
    solved = [minimize(rosenbrock(x), x, method=method)[0] for method in ("BFGS", "CG")]
    f = engine.function([x], solved)
    program = f._compiled.runner.program
    assert sorted(json.loads(use.options)["method"] for use in program.callbacks) == ["BFGS", "CG"]
    assert program.callbacks[0].functions == program.callbacks[1].functions


@pytest.mark.parametrize("kind", [MinimizeOp, MinimizeScalarOp, RootOp, RootScalarOp])
def test_ops_pickle_and_are_lowered(kind):
    x, a = pt.scalar("x"), pt.scalar("a")
    method = next(iter(_METHODS[kind.solver]))
    role = {RootOp: "equations", RootScalarOp: "equation"}.get(kind, "objective")
    op = kind(x, a, **{role: (x - a) ** 2}, method=method, jac=True, limits=("bracket",))
    again = pickle.loads(pickle.dumps(op))
    assert again == op
    assert hash(again) == hash(op)
    assert again.clone() is again
    assert kind in LOWERED


def test_an_op_says_what_it_is():
    x = pt.scalar("x")
    assert str(minimize(x**2, x, method="powell")[0].owner.op) == "MinimizeOp{Powell}"


def test_options_are_canonical():
    assert canonical_options("minimize", None) == "{}"
    one = canonical_options("minimize", {"tol": 1.0, "bounds": ((0, None), (1, 2))})
    assert one == '{"bounds":[[0,null],[1,2]],"tol":1.0}'
    assert canonical_options("minimize", {"tol": 1}) != canonical_options("minimize", {"tol": 1.0})
    with pytest.raises(TypeError, match="keys must be strings"):
        canonical_options("minimize", {"options": {1: 2}})


def test_nobody_needs_the_solution_when_only_its_shape_is_asked_for():
    x = pt.vector("x")
    f = engine.function([x], minimize(rosenbrock(x), x)[0].shape[0])
    assert f([1.0, 2.0, 3.0]) == 3
    assert f._compiled.runner.program.invocations == ()


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov"])
def test_threads_solve_different_problems_at_the_same_time(method):
    x, a = pt.vector("x"), pt.vector("a")
    solution, success = root(x**3 + pt.sum(x) - a, x, method=method)
    f = engine.function([x, a], [solution, success])
    targets = [np.full(4, 20.0 + k) for k in range(4)]
    alone = [f(np.ones(4), target) for target in targets]
    found: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        found[number] = [f(np.ones(4), targets[number]) for _ in range(30)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, due in enumerate(alone):
        for solved, is_solved in found[number]:
            np.testing.assert_array_equal(solved, due[0])
            assert is_solved == due[1]
