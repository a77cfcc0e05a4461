"""Ops whose `perform` fills a container of its module: later processes hit, whatever is in it by then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

MODULE = """
import numpy as np

import engine
import engine.tensor as pt
from engine.graph import Op

MEMO = {}
LENGTHS = {}


class Scaled(Op):
    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * MEMO.setdefault("factor", 2.0)

    def infer_shape(self, fgraph, node, input_shapes):
        return input_shapes


class Ones(Op):
    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.ones(LENGTHS.setdefault("n", 3))

    def infer_shape(self, fgraph, node, input_shapes):
        return [(pt.constant(LENGTHS.get("n", 3)),)]


@engine.wrap_py([pt.dvector], [pt.dvector])
def scaled(x):
    return x * MEMO.setdefault("factor", 2.0)
"""

PROGRAM = """
import json
import sys

import numpy as np

import engine
import engine.tensor as pt
import ops

ops.MEMO.update(json.loads(sys.argv[1]))
ops.LENGTHS.update(json.loads(sys.argv[2]))
x = pt.vector("x")
functions = {
    "memo": engine.function([x], ops.Scaled()(x)),
    "constant": engine.function([], ops.Scaled()(pt.constant(np.ones(2)))),
    "function": engine.function([x], ops.scaled(x) + 1),
    "lengths": engine.function([x], ops.Ones()(x).shape[0]),
}
print(json.dumps({
    name: [f.cache_info.outcome, np.asarray(f() if name == "constant" else f(np.ones(2))).tolist()]
    for name, f in functions.items()
}))
"""


def run(directory: Path, memo: dict[str, float], lengths: dict[str, int]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "program.py", json.dumps(memo), json.dumps(lengths)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=directory,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_process_that_finds_another_memo_hits_and_reads_it_and_one_whose_lengths_follow_from_it_misses(
    tmp_path: Path,
) -> None:
    (tmp_path / "ops.py").write_text(MODULE)
    (tmp_path / "program.py").write_text(PROGRAM)
    first = run(tmp_path, {}, {})
    assert first == {
        "memo": ["miss", [2.0, 2.0]],
        "constant": ["miss", [2.0, 2.0]],
        "function": ["miss", [3.0, 3.0]],
        "lengths": ["miss", 3],
    }
    assert run(tmp_path, {}, {}) == {name: ["hit", value] for name, (_, value) in first.items()}
    assert run(tmp_path, {"factor": 5.0, "other": 1.0}, {"n": 4}) == {
        "memo": ["hit", [5.0, 5.0]],
        "constant": ["hit", [5.0, 5.0]],
        "function": ["hit", [6.0, 6.0]],
        "lengths": ["miss", 4],
    }
