"""Ops that hold native functions: cached from one process to the next, and another when the extension
was rebuilt.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.building import Extensions
from tests.extensions.cases import CASES, Case

ROOT = Path(__file__).parents[2]
HELD = [case for case in CASES if not case.is_of_instances]
"""What takes numbers alone."""

REBUILT = ("with_pybind11_3", "with_swig", "with_cython", "with_c_api")

pytestmark = pytest.mark.slow

OPS = """
import numpy as np

import engine.tensor as pt
from engine.graph import Apply, Op


class Applied(Op):
    __props__ = ("function",)

    def __init__(self, function):
        self.function = function

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.array([float(self.function(x)) for x in inputs[0].tolist()])
"""

MAKE = """
import json, os, sys
sys.path[:0] = [*sys.argv[1].split(os.pathsep), sys.argv[2]]
import numpy as np
import engine, engine.tensor as pt
from native_ops import Applied
from tests.extensions.cases import CASES

def row(function):
    x = pt.vector("x")
    f = engine.function([x], pt.exp(Applied(function)(x)) - 1.0)
    return [f.cache_info.outcome, f.cache_info.reason, f(np.array([0.0, 0.5])).tolist()]

found = {str(case): row(case.function()) for case in CASES if str(case) in sys.argv[3:]}
print(json.dumps([found, sorted({"numba", "cloudpickle"} & sys.modules.keys())]))
"""


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    """A directory with the module of the Ops."""
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "native_ops.py").write_text(OPS)
    return tmp_path / "ops"


def process(program: str, *arguments: object) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected(factor: float) -> Any:
    from math import exp

    return pytest.approx([0.0, exp(factor * 0.5) - 1.0])


def test_an_op_with_a_native_function_of_any_kind_is_a_hit_in_the_next_process(
    extensions: Extensions, ops: Path
) -> None:
    extensions.require_any()
    held = [case for case in HELD if case.module in extensions.built]
    first, _ = process(MAKE, extensions.directory, ops, *held)
    assert first.keys() == set(map(str, held))
    assert {name: row[:2] for name, row in first.items()} == {str(c): ["miss", "never-seen"] for c in held}
    second, imported = process(MAKE, extensions.directory, ops, *held)
    assert {name: row[0] for name, row in second.items()} == dict.fromkeys(first, "hit")
    assert imported == []
    for rows in (first, second):
        assert all(row[2] == expected(2.0) for row in rows.values()), rows


def test_an_op_whose_extension_was_rebuilt_is_a_miss_and_gives_the_new_result(
    extensions: Extensions, ops: Path
) -> None:
    extensions.require_any()
    held = [Case(name, "scaled") for name in REBUILT if name in extensions.built]
    changed = os.pathsep.join(str(extensions.rebuilt(case.module)) for case in held)
    for directory, factor, outcome in (
        (extensions.directory, 2.0, "miss"),
        (changed, 3.0, "miss"),
        (extensions.directory, 2.0, "hit"),
        (changed, 3.0, "hit"),
    ):
        rows, _ = process(MAKE, directory, ops, *held)
        assert {name: row[0] for name, row in rows.items()} == {str(case): outcome for case in held}
        assert all(row[2] == expected(factor) for row in rows.values())


SAVE = """
import json, os, sys
sys.path[:0] = [*sys.argv[1].split(os.pathsep), sys.argv[2]]
import engine, engine.tensor as pt
from cachegraph import pickling
from native_ops import Applied
from tests.extensions.cases import CASES

rows = {}
for case in CASES:
    if str(case) in sys.argv[3:]:
        x = pt.vector("x")
        f = engine.function([x], pt.exp(Applied(case.function())(x)) - 1.0)
        rows[str(case)] = [sorted(pickling.import_paths(f)), pickling.dumps(f).hex()]
print(json.dumps(rows))
"""
LOAD = """
import json, os, sys
sys.path[:0] = [*sys.argv[1].split(os.pathsep), sys.argv[2]]
import numpy as np
from cachegraph import pickling
from tests.extensions.cases import EXPRESSIONS

assert not {*EXPRESSIONS, "_with_swig", "native_ops"} & sys.modules.keys()
trusted = ("engine", "cachegraph", "native_ops")
rows = {}
for name, (paths, content) in json.load(open(sys.argv[3])).items():
    try:
        pickling.loads(bytes.fromhex(content), trusted)
        raise AssertionError(f"{name} was not declared")
    except pickling.UntrustedPickle:
        pass
    f = pickling.loads(bytes.fromhex(content), trusted, declared=[tuple(path) for path in paths])
    rows[name] = [f(np.array([0.0, 0.5])).tolist(), f.cache_info.outcome]
print(json.dumps(rows))
"""


def test_a_function_with_such_an_op_is_pickled_by_hand_and_runs_where_nothing_is_kept(
    extensions: Extensions, ops: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extensions.require_any()
    held = [case for case in HELD if case.module in extensions.built and case.expression == "scaled"]
    saved = process(SAVE, extensions.directory, ops, *held)
    assert saved.keys() == set(map(str, held))
    (tmp_path / "functions.json").write_text(json.dumps(saved))
    monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path / "another"))
    loaded = process(LOAD, extensions.directory, ops, tmp_path / "functions.json")
    assert loaded.keys() == saved.keys()
    for result, outcome in loaded.values():
        assert result == expected(2.0)
        assert outcome == "carried"
