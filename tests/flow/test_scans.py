"""Functions of loops: compiled they give what the reference gives, in every mode; what two functions
share is found.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import scan
from engine.inner import OpFromGraph, Scan
from tests.flow.test_inner_graphs import in_fresh_process

RANDOM = np.random.default_rng(11)
X, Y, Z = RANDOM.normal(size=6), RANDOM.normal(size=(6, 3)), RANDOM.normal(size=3)
W = RANDOM.normal(size=(3, 3)) / 2
Model = tuple[list[Any], Any, list[np.ndarray]]
"""Inputs, a cost, and values."""


@pytest.fixture(scope="module", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory, unreachable_user_cache: Any) -> Any:
    """A kernel that several examples need is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(tmp_path_factory.mktemp("scans") / "cache"))
        yield


@pytest.fixture(autouse=True)
def cache_directory() -> None:
    """Not a directory a test, but that of the module."""


def rows(*arguments: Any, **options: Any) -> Any:
    return scan(*arguments, **options, return_updates=False)


def kalman() -> Model:
    """The log likelihood of a local level, up to a constant."""
    y, level, noise = pt.dvector("y"), pt.dscalar("level"), pt.dscalar("noise")

    def step(y_t: Any, a: Any, p: Any) -> list[Any]:
        f = p + pt.exp(noise)
        k = p / f
        v = y_t - a
        return [a + k * v, p * (1 - k) + pt.exp(level), -0.5 * (pt.log(f) + v**2 / f)]

    found = rows(step, y, [np.float64(0.0), np.float64(10.0), None])
    return [y, level, noise], pt.sum(found[2]), [X, np.array(0.1), np.array(-0.3)]


def recurrent(last: bool = False) -> Model:
    """A recurrent network."""
    y, w, b, h = pt.dmatrix("y"), pt.dmatrix("w"), pt.dvector("b"), pt.dvector("h")
    states = rows(lambda y_t, h, w: pt.tanh(pt.dot(w, h) + y_t + b), y, h, w)
    return [y, w, b, h], pt.sum(pt.sqr(states[-1] if last else states)), [Y, W, Z, Z / 2]


def batches() -> Model:
    """A recurrent network of matrices."""
    y, w, h = pt.tensor3("y"), pt.dmatrix("w"), pt.dmatrix("h")
    states = rows(lambda y_t, h: pt.tanh(pt.dot(h, w) + pt.dot(y_t, w.T)), y, h)
    values = [RANDOM.normal(size=(4, 2, 3)), W, RANDOM.normal(size=(2, 3))]
    return [y, w, h], pt.sum(states[-1] * pt.sum(states, 0)), values


def several_taps() -> Model:
    x, start, a = pt.dvector("x"), pt.dvector("start"), pt.dscalar("a")
    info = [{"initial": start, "taps": [-3, -1]}, None]
    found = rows(lambda x_t, s3, s1: [pt.sin(a * s3) * x_t + s1, s1 * s3], x, info)
    return [x, start, a], pt.sum(found[0] * found[1]) + found[0][-2], [X, Z, np.array(0.7)]


def until() -> Model:
    x, a = pt.dvector("x"), pt.dscalar("a")
    found = rows(lambda x_t, s: ([s * a + x_t**2, s * x_t], engine.until(s > 2.0)), x, [a, None])
    return [x, a], pt.sum(found[0]) * found[1][-1] + found[0][-1], [np.ones(9), np.array(0.9)]


def nested() -> Model:
    x, y, a = pt.dvector("x"), pt.dvector("y"), pt.dscalar("a")

    def outer(x_t: Any, s: Any) -> Any:
        return pt.sum(rows(lambda y_t, r: pt.sin(r * a + y_t * x_t) + s, y, s))

    return [x, y, a], pt.sum(rows(outer, x, a)), [X[:3] / 3, Z, np.array(0.3)]


def layers() -> Model:
    """Layers that hold graphs, inside of a loop."""
    v, w, y, b = pt.dvector(), pt.dmatrix(), pt.dmatrix("y"), pt.dmatrix("b")
    layer = OpFromGraph([v, w], [pt.tanh(pt.dot(w, v)) + v / 2])
    found = rows(lambda y_t, h: layer(layer(h, b) + y_t, b), y, pt.zeros((3,)))
    return [y, b], pt.sum(found**2), [Y, W]


def indexed() -> Model:
    """Rows chosen by integers, and a count."""
    x, index = pt.dvector("x"), pt.lvector("index")
    found = rows(lambda i, s, n: [s * x[i] + 1, n + i], index, [np.float64(0.5), np.int64(0)])
    return [x, index], pt.sum(found[0] * found[1]), [X, np.array([2, 0, 2, 5, 1])]


def single_precision() -> Model:
    x, a = pt.fvector("x"), pt.fscalar("a")
    found = rows(lambda x_t, s: pt.tanh(s * a + x_t), x, np.float32(0.5))
    return [x, a], pt.sum(found[-1] * found), [X.astype("float32"), np.float32(0.4)]


def backwards() -> Model:
    x, n = pt.dvector("x"), pt.lscalar("n")
    found = rows(lambda a, b, s: s * a - b, {"input": x, "taps": [1, -1]}, 1.0, n_steps=n, go_backwards=True)
    return [x, n], pt.sum(found[-1] ** 2), [X, np.array(3)]


MODELS: list[Callable[[], Model]] = [
    kalman,
    recurrent,
    batches,
    several_taps,
    until,
    nested,
    layers,
    indexed,
    single_precision,
    backwards,
]


def floats(inputs: list[Any]) -> list[Any]:
    return [variable for variable in inputs if variable.type.dtype.startswith("float")]


def assert_as_reference(inputs: list[Any], outputs: list[Any], values: list[np.ndarray], mode: Any) -> Any:
    f = engine.function(inputs, outputs, mode=mode)
    for _ in range(2):  # the second call finds memory as the first left it
        due = engine.function(inputs, outputs, mode="NUMPY")(*values)
        for found, expected in zip(f(*values), due, strict=True):
            tolerance = 1e-5 if expected.dtype == np.float32 else 1e-10
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    return f


UNREWRITTEN = engine.Mode("numba", engine.compiling.mode.MODES["NUMPY"].optimizer)


@pytest.mark.parametrize("model", MODELS)
def test_a_cost_and_its_gradient_are_what_the_reference_gives(model: Callable[[], Model]) -> None:
    inputs, cost, values = model()
    assert_as_reference(inputs, [cost, *engine.grad(cost, floats(inputs))], values, None)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["FAST_COMPILE", UNREWRITTEN], ids=["hardly rewritten", "not rewritten"])
@pytest.mark.parametrize("model", MODELS)
def test_every_mode_computes_the_same(model: Callable[[], Model], mode: Any) -> None:
    inputs, cost, values = model()
    assert_as_reference(inputs, [cost, *engine.grad(cost, floats(inputs))], values, mode)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_gradients_of_gradients_are_what_the_reference_gives(model: Callable[[], Model]) -> None:
    inputs, cost, values = model()
    first = engine.grad(cost, floats(inputs))
    length = sum([pt.sum(pt.sqr(gradient)) for gradient in first])
    second = engine.grad(length, floats(inputs), disconnected_inputs="ignore")
    assert_as_reference(inputs, [length, *second], values, None)


def test_no_steps_at_all_have_gradients_too() -> None:
    inputs, cost, values = recurrent()
    assert_as_reference(inputs, [cost, *engine.grad(cost, inputs)], [Y[:0], *values[1:]], None)


def kept(f: Any) -> list[tuple[int | None, ...]]:
    """What each loop of a compiled function keeps of its states."""
    return [node.op.info.keeps for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)]


def test_a_fold_keeps_one_row_however_many_steps_it_does() -> None:
    n, a = pt.lscalar("n"), pt.dvector("a")
    s = rows(lambda s: s * 0.5 + 1, outputs_info=a, n_steps=n)
    f = engine.function([n, a], s[-1])
    assert kept(f) == [(1,)]
    np.testing.assert_allclose(f(10_000, np.zeros(3)), [2.0] * 3)
    with pytest.raises(IndexError):
        f(0, np.zeros(3))


def test_compiling_changes_no_loop_that_the_user_holds() -> None:
    inputs, cost, values = kalman()
    node = next(n for n in engine.graph.toposort([cost]) if isinstance(n.op, Scan))
    graph, nodes = node.op.fgraph, node.op.fgraph.nodes
    assert_as_reference(inputs, [cost], values, None)
    assert node.op.fgraph is graph
    assert node.op.fgraph.nodes == nodes
    assert_as_reference(inputs, [cost, *engine.grad(cost, inputs)], values, None)
    assert kalman()[1].owner.inputs[0].owner.op == node.op


def test_names_of_loops_and_of_variables_are_in_no_key() -> None:
    keys = set()
    for name in ("first", "second"):
        x = pt.dvector(name)
        f = engine.function([x], rows(lambda x_t, s: s * x_t, x, 1.0, name=name))
        keys.add(f.cache_info.key)
    assert len(keys) == 1


def test_equal_loops_of_one_function_share_their_kernel() -> None:
    x, y = pt.dvector("x"), pt.dvector("y")
    first, second = (rows(lambda x_t, s: pt.sin(s) * x_t, v, 1.0) for v in (x, y))
    one = engine.function([x], first)
    two = engine.function([x, y], [first, second])
    # The machine, the fast call and the loop's kernel are found; a new one writes what both loops start with.
    assert two.cache_info.found["kernel"] == [3, 1]
    np.testing.assert_array_equal(two(X, X)[1], one(X))


SHARING = """
import json, engine
from tests.flow.test_scans import kalman
inputs, cost, values = kalman()
outputs = {outputs}
f = engine.function(inputs, outputs)
f(*values)
info = f.cache_info
print(json.dumps([info.outcome, info.found, info.compilations]))
"""


def test_a_density_and_its_gradient_share_the_loop_in_a_fresh_process(tmp_path: Path) -> None:
    density, both = "[cost]", "[cost, *engine.grad(cost, inputs)]"
    outcome, found, _ = in_fresh_process(SHARING.format(outputs=density), tmp_path)
    assert (outcome, found["op"]) == ("miss", [0, 1])
    outcome, found, _ = in_fresh_process(SHARING.format(outputs=both), tmp_path)
    assert (outcome, found["op"]) == ("miss", [1, 1])
    assert found["kernel"][0] > 1
    outcome, _, compilations = in_fresh_process(SHARING.format(outputs=both), tmp_path)
    assert (outcome, compilations) == ("hit", 0)


def test_a_warm_start_rewrites_and_compiles_nothing_and_imports_neither(tmp_path: Path) -> None:
    code = SHARING.format(outputs="[cost, *engine.grad(cost, inputs)]") + (
        "import sys; heavy = ('numba', 'sqlalchemy', 'scipy.linalg', 'engine.rewriting.pipeline')\n"
        "print(json.dumps([name for name in heavy if name in sys.modules]))"
    )
    in_fresh_process(code.replace("print(json.dumps([info", "str(json.dumps([info"), tmp_path)
    assert in_fresh_process(code.replace("print(json.dumps([info", "str(json.dumps([info"), tmp_path) == []
