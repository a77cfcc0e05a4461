"""PyTensor's solvers on functions of the engine: SciPy's results, without a compiler of C or numba."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.optimize import minimize, minimize_scalar, root, root_scalar

import engine.pytensor

PROCESS = """
import subprocess, sys
from unittest.mock import patch
import cachegraph.pytensor, numpy as np, pytensor, pytensor.tensor as pt
from pytensor.tensor.optimize import minimize
cachegraph.pytensor.install(backend="engine")
x, a = pt.dvectors("x", "a")
with patch.object(subprocess, "Popen", side_effect=AssertionError("a compiler")):
    f = pytensor.function([x, a], minimize(((x - a) ** 2 * pt.exp(a)).sum(), x))
    print(f(np.ones(2), np.array([1.0, 4.0]))[0].round(3).tolist(), "numba" in sys.modules)
print(cachegraph.counters().levels)
"""


@pytest.fixture(autouse=True)
def registered() -> None:
    engine.pytensor.register()


def functions(inputs: list[Any], outputs: list[Any]) -> tuple[Any, Any]:
    """Return the engine's function, and PyTensor's in Python."""
    own = pytensor.function(inputs, outputs, mode="ENGINE")
    assert "PyTensor computes" in engine.pytensor.explain(own)
    with pytensor.config.change_flags(cxx=""):
        return own, pytensor.function(inputs, outputs, mode="FAST_COMPILE")


def both(inputs: list[Any], outputs: list[Any], *values: Any) -> list[tuple[Any, Any]]:
    """Return the results of the engine, each beside that of PyTensor in Python."""
    own, other = functions(inputs, outputs)
    return list(zip(own(*values), other(*values), strict=True))


def test_vectors_are_solved_with_their_gradients() -> None:
    start, target = pt.dvectors("start", "target")
    least, found = minimize(((start - target) ** 2 * pt.exp(target)).sum(), start)
    zero, solved = root(start**3 - target, start)
    gradients = pytensor.grad((least * 3 + zero).sum(), target)
    aim = np.array([1.0, 8.0, 0.125])
    results = both([start, target], [least, zero, gradients, found, solved], np.ones(3), aim)
    for own, other in results:
        np.testing.assert_allclose(own, other, rtol=1e-6)
    (roots, _), (slopes, _), (is_found, _), (is_solved, _) = results[1:]
    assert is_found
    assert is_solved
    np.testing.assert_allclose(roots, np.cbrt(aim), rtol=1e-7)
    np.testing.assert_allclose(slopes, 3 + np.cbrt(aim) ** -2 / 3, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_solved_by_each_solver(dtype: str) -> None:
    x, a = (pt.scalar(name, dtype=dtype) for name in "xa")
    solutions = [
        *minimize((x - a) ** 2 + 1, x, method="Newton-CG", hess=True),
        *minimize_scalar((x - a) ** 4, x, method="bounded", bounds=pt.stack([a - 1, a + 3])),
        *root(x * 3 - a, x),
        *root_scalar(x**2 - a, x, method="halley", jac=True, hess=True),
        *root_scalar(x**2 - a, x, method="brentq", bracket=pt.stack([a * 0, a + 1])),
    ]
    values = np.array([1.0, 2.0], dtype=dtype)
    for own, other in both([x, a], solutions, *values):
        assert own.dtype == other.dtype
        np.testing.assert_allclose(own, other, rtol=1e-3 if dtype == "float32" else 1e-6)


def test_a_solver_that_fails_says_so_as_pytensors_does() -> None:
    x, a = pt.dscalars("x", "a")
    solution = root_scalar(x**2 + a, x, method="brentq", bracket=[-1.0, 1.0])
    for f in functions([x, a], list(solution)):
        with pytest.raises(ValueError, match="must have different signs"):
            f(1.0, 2.0)


def test_neither_a_first_process_nor_a_second_runs_a_compiler(tmp_path: Path) -> None:
    flags = {"PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}
    lines = [
        subprocess.run(
            [sys.executable, "-c", PROCESS],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | flags,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert [line[0] for line in lines] == ["[1.0, 4.0] False"] * 2
    assert "'function': {'hits': 0, 'misses': 3}" in lines[0][1]
    assert "'function': {'hits': 1, 'misses': 0}" in lines[1][1]
    assert lines[1][1].count("'misses': 0}") == 4
