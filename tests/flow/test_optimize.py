"""Functions with solvers in them: their objectives are entries of their own, found again in every
later process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import default_cache
from cachegraph.errors import CacheMissError
from cachegraph.key import CacheKey
from cachegraph.store.entry import Artifact, Hit
from engine.inner.optimize_ops import MinimizeOp
from engine.tensor.optimize import minimize, root_scalar

ROOT = Path(__file__).resolve().parents[2]


def problem(name: str | None = None) -> tuple[list[Any], list[Any]]:
    """Where a sum of exponentials is smallest, with the gradient for a parameter."""
    x, a = pt.vector(name), pt.vector(name)
    solution, success = minimize(pt.sum(pt.exp(x) - a * x), x, "trust-exact", hess=True)
    return [x, a], [solution, success, engine.grad(pt.sum(solution), a)]


def related() -> tuple[list[Any], list[Any]]:
    """Another function of the same problem."""
    x, a = pt.vector(), pt.vector()
    solution, _ = minimize(pt.sum(pt.exp(x) - a * x), x, "trust-exact", hess=True)
    return [x, a], [pt.tanh(solution)]


def in_fresh_process(code: str, cache: Path, **environment: str) -> Any:
    """What `code` prints as JSON, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT), "CACHEGRAPH_DIR": str(cache)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


WARM = """
import json, sys
import numpy as np
import engine
from tests.flow.test_optimize import problem, related
f = engine.function(*{model}())
before = sorted(set(sys.modules) & {{"scipy", "numba", "sqlalchemy"}})
found = f(np.zeros(2), np.array([2.0, 3.0]))
info = f.cache_info
print(json.dumps([info.outcome, info.found, info.compilations, info.rewrites, before, found[0].tolist()]))
"""


def test_a_second_process_solves_without_rewriting_or_compiling(tmp_path: Path) -> None:
    outcome, found, compilations, _, _, solution = in_fresh_process(WARM.format(model="problem"), tmp_path)
    assert (outcome, found["function"], compilations > 1) == ("miss", [0, 2], True)
    np.testing.assert_allclose(solution, np.log([2.0, 3.0]), rtol=1e-6)
    outcome, found, compilations, rewrites, modules, again = in_fresh_process(
        WARM.format(model="problem"), tmp_path, CACHEGRAPH_ON_MISS="error"
    )
    assert (outcome, found["function"], compilations, rewrites) == ("hit", [2, 0], 0, 0)
    assert modules == []  # SciPy is imported by the first call
    assert again == solution


def test_another_function_of_the_same_problem_finds_its_objective(tmp_path: Path) -> None:
    in_fresh_process(WARM.format(model="problem"), tmp_path)
    outcome, found, _, _, _, solution = in_fresh_process(WARM.format(model="related"), tmp_path)
    assert (outcome, found["function"]) == ("miss", [1, 1])
    np.testing.assert_allclose(solution, np.tanh(np.log([2.0, 3.0])), rtol=1e-6)


def test_names_are_in_no_key() -> None:
    first = engine.function(*problem("one"))
    second = engine.function(*problem("another"))
    assert second.cache_info.outcome == "hit"
    assert second.cache_info.key == first.cache_info.key


def objective_key(f: Any) -> CacheKey:
    (callee,) = f._compiled.runner.functions
    key = callee.key
    return CacheKey(key.level, (), key.digest, key.confirmation)


@pytest.mark.parametrize("content", [None, b"", b"other bytes"])
def test_without_its_objective_a_function_is_a_miss_with_a_reason_and_is_built_anew(
    content: bytes | None,
) -> None:
    first = engine.function(*problem())
    cache = default_cache()
    key = objective_key(first)
    if content is None:
        cache._store.delete([key.digest])
    else:
        cache.store(key, Artifact(content))
    second = engine.function(*problem())
    assert (second.cache_info.outcome, second.cache_info.reason) == ("miss", "unreadable")
    assert second.cache_info.compilations == 0
    arguments = np.zeros(2), np.array([2.0, 3.0])
    for one, other in zip(first(*arguments), second(*arguments), strict=True):
        np.testing.assert_array_equal(one, other)
    assert isinstance(cache.lookup(key), Hit)
    assert engine.function(*problem()).cache_info.outcome == "hit"


def test_where_nothing_may_be_compiled_a_new_problem_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine.function(*problem())
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    assert engine.function(*problem()).cache_info.outcome == "hit"
    with pytest.raises(CacheMissError):
        engine.function(*related())


@pytest.mark.parametrize("mode", ["off", "readonly"])
def test_without_a_cache_to_write_to_it_is_solved_all_the_same(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", mode)
    f = engine.function(*problem())
    np.testing.assert_allclose(f(np.zeros(2), [2.0, 3.0])[0], np.log([2.0, 3.0]), rtol=1e-6)
    assert f.cache_info.outcome == ("bypass" if mode == "off" else "miss")


def test_a_problem_within_the_objective_of_another_is_found_again_too() -> None:
    def nested() -> tuple[list[Any], list[Any]]:
        x, y, a = pt.scalar(), pt.scalar(), pt.scalar()
        inner, _ = root_scalar(y**3 - x, y, method="newton", jac=True)
        return [x, y, a], [*minimize((inner - a) ** 2, x)]

    first = engine.function(*nested())
    second = engine.function(*nested())
    assert second.cache_info.found["function"] == [3, 0]
    assert first.cache_info.found["function"] == [0, 3]
    for f in (first, second):
        solution, success = f(1.0, 1.0, 2.0)
        np.testing.assert_allclose(solution, 8.0, rtol=1e-4)
        assert success


def test_an_objective_is_rewritten_once_for_all_methods_and_no_op_that_the_user_holds_changes() -> None:
    x, a = pt.vector(), pt.vector()
    solved = [minimize(pt.sum(pt.exp(x) - a * x), x, method)[0] for method in ("BFGS", "CG")]
    ops = [solution.owner.op for solution in solved]
    graphs = [op.fgraph for op in ops]
    f = engine.function([x, a], solved)
    assert f.cache_info.found["op"] == [0, 1]
    assert f.cache_info.found["function"] == [0, 2]
    assert [op.fgraph for op in ops] == graphs
    rewritten = {node.op.fgraph for node in f.maker.fgraph.apply_nodes if isinstance(node.op, MinimizeOp)}
    assert len(rewritten) == 1
    assert len(rewritten.pop().nodes) < len(graphs[0].nodes)
    g = engine.function([x, a], solved[1])
    assert g.cache_info.found["op"] == [1, 0]
    assert g.cache_info.found["function"] == [1, 1]
    np.testing.assert_allclose(g([0.0], [2.0]), np.log([2.0]), atol=1e-4)
