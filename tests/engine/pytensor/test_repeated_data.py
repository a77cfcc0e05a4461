"""What is computed of data and of the same numbers with more axes is computed once, and never of other data."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import cachegraph.pytensor
from cachegraph.pytensor import explain
from engine.pytensor.stored_program import StoredProgram
from tests.cachegraph.pytensor.entry_points import declared

ROOT = Path(__file__).resolve().parents[3]
SEEN = np.linspace(-2.0, 3.0, 50)
POINT = np.array([0.5, -1.0, 2.0])

IN_ANOTHER_PROCESS = """
import sys
import numpy as np
import cachegraph.pytensor
from tests.engine.pytensor.test_repeated_data import POINT, SEEN, due, mixture
cachegraph.pytensor.install(backend="engine")
seen, column = SEEN + float(sys.argv[1]), SEEN + float(sys.argv[2])
f = mixture(seen, column)
for found, expected in zip(f(POINT), due(seen, column), strict=True):
    np.testing.assert_allclose(found, expected)
print(cachegraph.pytensor.explain(f).outcome)
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = declared(tmp_path / "points")
    monkeypatch.syspath_prepend(points)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{points}")
    cachegraph.pytensor.install(backend="engine")
    yield
    cachegraph.pytensor.uninstall()


def mixture(seen: np.ndarray, column: np.ndarray) -> Any:
    """A density whose first half has data as a vector, and its second half as a folded column."""
    mu = pt.dvector("mu")
    first = pt.log(pt.exp(-((pt.constant(seen)[:, None] - mu[None]) ** 2)).sum(axis=1)).sum()
    second = pt.log(pt.exp(-((pt.constant(column[:, None]) - mu[None]) ** 2)).sum(axis=1)).sum()
    return pytensor.function([mu], [first, second])


def due(*data: np.ndarray) -> list[float]:
    return [float(np.log(np.exp(-((seen[:, None] - POINT) ** 2)).sum(axis=1)).sum()) for seen in data]


def data_of(function: Any) -> list[Any]:
    return function.get_shared()


def test_the_density_of_both_is_computed_once() -> None:
    function = mixture(SEEN, SEEN.copy())
    assert len(data_of(function)) == 1
    assert [node.op == pt.exp for node in function.maker.fgraph.apply_nodes].count(True) == 1
    np.testing.assert_allclose(function(POINT), due(SEEN, SEEN))


def test_other_data_that_repeat_alike_are_a_hit_and_those_that_do_not_a_miss() -> None:
    mixture(SEEN, SEEN)
    changed = SEEN.copy()
    changed[-1] += 1e-9
    for seen, column, outcome in (
        (SEEN * 2, SEEN * 2, "hit"),
        (SEEN * 2, SEEN, "miss"),
        (SEEN, changed, "hit"),
        (SEEN * 3, SEEN * 3, "hit"),
    ):
        function = mixture(seen, column)
        assert explain(function).outcome == outcome
        assert len(data_of(function)) == (1 if np.array_equal(seen, column) else 2)
        np.testing.assert_allclose(function(POINT), due(seen, column))
    assert isinstance(function.vm.jit_fn, StoredProgram)


def test_a_second_process_finds_it_by_how_its_own_data_repeat() -> None:
    for seen, column, outcome in (("0", "0", "miss"), ("1", "1", "hit"), ("1", "2", "miss")):
        command = [sys.executable, "-c", IN_ANOTHER_PROCESS, seen, column]
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=300, check=False)
        assert (done.returncode, done.stdout) == (0, f"{outcome}\n"), done.stderr


def test_arrays_and_results_that_are_overwritten_change_no_later_call() -> None:
    x, seen, column = pt.dscalar("x"), SEEN.copy(), SEEN[:, None].copy()
    first, second = pt.constant(seen), pt.constant(column)
    function = pytensor.function([x], [first, second, second * x, first[::2]])
    for _ in range(2):
        results = function(2.0)
        np.testing.assert_array_equal(results[0], SEEN)
        np.testing.assert_array_equal(results[1], SEEN[:, None])
        np.testing.assert_array_equal(results[2], SEEN[:, None] * 2)
        np.testing.assert_array_equal(results[3], SEEN[::2])
        for written in (seen, column, *results):
            written[:] = 7.0


def test_indices_that_repeat_read_and_write_alike() -> None:
    mu, group = pt.dvector("mu"), np.arange(50) % 3
    read = mu[pt.constant(group)] * mu[pt.constant(group.copy())]
    function = pytensor.function([mu], [read.sum(), pytensor.grad(read.sum(), mu)])
    assert len(data_of(function)) == 1
    total, gradient = function(POINT)
    np.testing.assert_allclose(total, (POINT[group] ** 2).sum())
    np.testing.assert_allclose(gradient, np.bincount(group) * 2 * POINT)


def test_verifying_builds_it_again_with_the_same_data(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture(SEEN, SEEN)
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    function = mixture(SEEN, SEEN)
    assert explain(function).outcome == "hit"
    np.testing.assert_allclose(function(POINT), due(SEEN, SEEN))
