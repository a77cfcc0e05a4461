"""Large constants of graphs within Ops: kept once, however many functions have them, and never
believed unchecked.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.errors import Unfingerprintable
from cachegraph.store.local.eviction import GRACE_SECONDS
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.pruning import carry_out, plan
from engine.graph import Constant
from engine.inner.from_graph import OpFromGraph
from engine.tensor import optimize
from tests.flow.model_process import ROOT

SIZE = 1_000_000
PROGRAM = """
import json, sys
import numpy as np
import engine, engine.tensor as pt
from tests.flow.test_large_constants import constant, function
rows = []
for which in sys.argv[1:]:
    f = function(int(which))
    rows.append([f.cache_info.outcome, f.cache_info.reason, float(f(np.full(3, 2.0)))])
print(json.dumps([rows, sorted({"numba", "cloudpickle"} & sys.modules.keys())]))
"""


def constant() -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).normal(size=SIZE)


def function(which: int) -> Any:
    """One of several functions with the same constant, which an Op holds."""
    x = pt.vector("x")
    inner = OpFromGraph([x], [pt.sum(x) + pt.sum(pt.exp(-which * pt.constant(constant()) ** 2))])
    return engine.function([x], inner(x) * which)


def expected(which: int) -> float:
    return which * (6.0 + float(np.exp(-which * constant() ** 2).sum()))


def process(*which: int) -> tuple[list[list[Any]], list[str]]:
    """Outcome, reason and result of functions that a process of its own makes; what it imported for that."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, which)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows, imported = json.loads(done.stdout)
    for number, row in zip(which, rows, strict=True):
        assert row[2] == pytest.approx(expected(number), rel=1e-9)
    return rows, imported


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def array_files(directory: Path) -> list[Path]:
    files = (directory / "v1" / "blobs").rglob("*")
    return [path for path in files if path.is_file() and path.stat().st_size == 8 * SIZE]


def test_functions_with_a_constant_in_common_have_it_once_and_are_hits(cache_directory: Path) -> None:
    rows, _ = process(1, 2)
    assert [row[0] for row in rows] == ["miss", "miss"]
    assert len(array_files(cache_directory)) == 1
    assert 8 * SIZE < size_of(cache_directory) < 8 * SIZE + 2_000_000
    rows, imported = process(1, 2)
    assert [row[0] for row in rows] == ["hit", "hit"]
    assert imported == []


def test_another_constant_is_another_function(cache_directory: Path) -> None:
    function(1)
    x = pt.vector("x")
    changed = constant()
    changed[-1] = np.nextafter(changed[-1], 0)
    inner = OpFromGraph([x], [pt.sum(x) + pt.sum(pt.exp(-1 * pt.constant(changed) ** 2))])
    assert engine.function([x], inner(x) * 1).cache_info.outcome == "miss"


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "flipped": _flip,
    "truncated": lambda path: os.truncate(path, 8 * SIZE - 1),
}


@pytest.mark.slow
def test_a_damaged_constant_is_a_miss_with_a_reason_and_the_right_result(cache_directory: Path) -> None:
    process(1, 2)
    for damage in DAMAGES.values():
        (path,) = array_files(cache_directory)
        damage(path)
        rows, _ = process(1, 2)
        assert rows[0][:2] == ["miss", "damaged"]
        assert rows[1][0] == "hit"  # the first has put it there again
    rows, _ = process(1, 2)
    assert [row[0] for row in rows] == ["hit", "hit"]


@pytest.mark.slow
def test_pruning_keeps_the_constant_as_long_as_an_entry_has_it(cache_directory: Path) -> None:
    process(1, 2)
    store = LocalStore(cache_directory)
    later = time.time() + 10 * GRACE_SECONDS
    store.delete([bytes.fromhex(function(1).cache_info.key)])
    carry_out(store, plan(store, later))
    assert len(array_files(cache_directory)) == 1
    assert process(2)[0][0][0] == "hit"
    store.delete([entry.digest for entry in store.scan()])
    carry_out(store, plan(store, later))
    assert array_files(cache_directory) == []


@pytest.mark.slow
def test_another_node_reads_it_from_a_shared_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHEGRAPH_SHARED_DIR", str(tmp_path / "shared"))
    for node, outcome in (("one", "miss"), ("two", "hit"), ("two", "hit")):
        monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path / node))
        assert process(1)[0][0][0] == outcome
    for tier in ("one", "two"):
        assert len(array_files(tmp_path / tier)) == 1


def test_the_objective_of_a_solver_has_it_once_too(cache_directory: Path) -> None:
    for outcome in ("miss", "hit"):
        x, a = pt.scalar("x"), pt.scalar("a")
        cost = OpFromGraph([a], [pt.sum(pt.exp(-(pt.constant(constant()) ** 2)) * (a - 3.0) ** 2)])
        best, _ = optimize.minimize_scalar(cost(x), x)
        f = engine.function([x], best * 2)
        assert f.cache_info.outcome == outcome
        assert float(f(0.0)) == pytest.approx(6.0, rel=1e-9)
    assert len(array_files(cache_directory)) == 1
    assert size_of(cache_directory) < 8 * SIZE + 2_000_000


def test_an_inner_graph_that_is_found_by_its_own_key_has_it() -> None:
    x = pt.vector("x")
    inner = OpFromGraph([x], [pt.sum(x) + pt.sum(pt.exp(-(pt.constant(constant()) ** 2)))])
    functions = [engine.function([x], inner(x) * which) for which in (1.0, 2.0)]
    assert [f.cache_info.found["op"] for f in functions] == [[0, 1], [1, 0]]
    values = [float(f(np.full(3, 2.0))) for f in functions]
    assert values == pytest.approx([expected(1), 2 * expected(1)], rel=1e-9)


def test_the_optimized_graph_of_a_hit_has_the_constant() -> None:
    function(1)
    f = function(1)
    assert f.cache_info.outcome == "hit"
    found = [v for node in f.maker.fgraph.toposort() for v in _all_inputs(node) if isinstance(v, Constant)]
    assert [v.data.tolist() for v in found if v.data.size == SIZE] == [constant().tolist()]


def _all_inputs(node: Any) -> list[Any]:
    inner = getattr(node.op, "fgraph", None)
    found = list(node.inputs)
    for below in inner.nodes if inner is not None else ():
        found += _all_inputs(below)
    return found


@pytest.mark.parametrize("mode", ["readwrite", "off"])
def test_a_pickled_function_carries_it(mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", mode)
    f = function(1)
    file = tmp_path / "function.pickle"
    file.write_bytes(pickle.dumps(f))
    program = "import pickle, sys, numpy as np; f = pickle.load(open(sys.argv[1], 'rb')); print(f(np.full(3, 2.0)), f.cache_info.outcome)"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CACHEGRAPH_DIR": str(tmp_path / "another")}
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    result, outcome = done.stdout.split()
    assert float(result) == pytest.approx(expected(1), rel=1e-9)
    assert outcome == "carried"


@pytest.mark.parametrize("mode", ["off", "readonly", "verify"])
def test_every_mode_gives_the_right_result(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function(1)
    monkeypatch.setenv("CACHEGRAPH_MODE", mode)
    assert float(function(1)(np.full(3, 2.0))) == pytest.approx(expected(1), rel=1e-9)


def test_a_function_without_a_key_has_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise Unfingerprintable("what has no key", "nothing helps")

    monkeypatch.setattr("engine.compiling.key.describe_rewrites", refuse)
    f = function(1)
    assert f.cache_info.outcome == "bypass"
    assert float(f(np.full(3, 2.0))) == pytest.approx(expected(1), rel=1e-9)
    assert float(pickle.loads(pickle.dumps(f))(np.full(3, 2.0))) == pytest.approx(expected(1), rel=1e-9)
