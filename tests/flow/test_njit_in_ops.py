"""Users' Ops whose functions numba compiles: fused into kernels or called, found by other processes,
and never mixed up.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

OPS = '''
import math
import sys

import numpy as np

import engine.tensor as pt
from engine.graph import Apply, Op
from engine.scalar.arithmetic import mul
from engine.scalar.op import ScalarOp
from engine.scalar.promotion import floating
from engine.tensor.elemwise import Elemwise
{imports}


class Bent(ScalarOp):
    """Elementwise: part of a kernel."""

    __props__ = ("number",)
    name = "bent"
    rule = staticmethod(floating)

    def __init__(self, number):
        self.number = number

    def _impl(self, x):
        return np.where(x < 0, x * self.number, x + self.number)

    def partial(self, index, inputs, output, cotangent, apply):
        return cotangent

    def numba_function(self, node):
        return body(self.number)


class Cumulated(Op):
    """On arrays: called."""

    __props__ = ("number",)

    def __init__(self, number):
        self.number = number

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.cumsum(Bent(self.number).impl(inputs[0]))

    def numba_function(self, node):
        inner = body(self.number)

        {decorator}
        def cumulated(x):
            found, total = np.empty_like(x), 0.0
            for n in range(len(x)):
                total += inner(x[n])
                found[n] = total
            return found

        return cumulated


def body(number):
    """Two functions of one qualified name."""
    if number == 1:
        {decorator}
        def bent(x):
            return x * 1 if x < 0 else math.fabs(x + 1) {extra}
    else:
        {decorator}
        def bent(x):
            return x * 2 if x < 0 else math.fabs(x + 2)
    return bent
'''

PROGRAM = """
import json, sys
import numpy as np
import cachegraph, engine, engine.tensor as pt
from ops import Bent, Cumulated, Elemwise

rows = []
for word in sys.argv[1:]:
    kind, number = word.split(":")
    x = pt.vector("x")
    applied = Elemwise(Bent(int(number)))(pt.exp(x) - 1) if kind == "bent" else Cumulated(int(number))(x * 1.5)
    f = engine.function([x], [applied * 3, pt.sum(applied)])
    value, total = f(np.array([-1.0, 0.5, 2.0]))
    info = f.cache_info
    rows.append([value.tolist(), float(total), info.outcome, info.reason, info.found.get("kernel")])
print(json.dumps([rows, "numba" in sys.modules, cachegraph.counters().levels["numba"]]))
"""
X = np.array([-1.0, 0.5, 2.0])


def run(
    directory: Path, *words: str, decorator: str = "", extra: str = ""
) -> tuple[list[Any], bool, dict[str, int]]:
    write_ops(directory, decorator, extra)
    return process(directory, *words)


def write_ops(directory: Path, decorator: str, extra: str = "") -> None:
    imports = "import numba" if decorator else ""
    text = OPS.format(imports=imports, decorator=decorator or "# plain", extra=extra)
    (directory / "ops.py").write_text(text)
    (directory / "program.py").write_text(PROGRAM)


def process(directory: Path, *words: str) -> tuple[list[Any], bool, dict[str, int]]:
    done = subprocess.run(
        [sys.executable, "program.py", *words],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(directory)]), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows, has_numba, counts = json.loads(done.stdout)
    return rows, has_numba, counts


def due(word: str, extra: float = 0.0) -> np.ndarray:
    kind, number = word.split(":")
    n = int(number)
    bent = lambda x: np.where(x < 0, x * n, x + n + (extra if n == 1 else 0))  # noqa: E731
    return bent(np.exp(X) - 1) if kind == "bent" else np.cumsum(bent(X * 1.5))


def assert_right(rows: list[Any], words: tuple[str, ...], extra: float = 0.0) -> None:
    for row, word in zip(rows, words, strict=True):
        np.testing.assert_allclose(row[0], due(word, extra) * 3, rtol=1e-13)
        np.testing.assert_allclose(row[1], due(word, extra).sum(), rtol=1e-13)


def test_functions_of_one_name_from_two_processes_are_told_apart_in_a_third(tmp_path: Path) -> None:
    """numba #10486, as a user meets it: an Op holds a function compiled by numba, and so do others of its
    name.
    """
    kinds = ("bent", "cumulated")
    for number in (1, 2):
        words = tuple(f"{kind}:{number}" for kind in kinds)
        rows, _, counts = run(tmp_path, *words, decorator="@numba.njit")
        assert_right(rows, words)
        assert [row[2] for row in rows] == ["miss", "miss"]
        assert counts == {"hits": 0, "misses": 1}
    words = tuple(f"{kind}:{number}" for kind in kinds for number in (1, 2))
    rows, _, counts = run(tmp_path, *words, decorator="@numba.njit")
    assert_right(rows, words)
    assert [row[2] for row in rows] == ["hit"] * 4
    assert counts == {"hits": 2, "misses": 0}


def test_a_hit_of_a_fused_function_needs_no_numba_and_an_edit_is_a_miss(tmp_path: Path) -> None:
    words = ("bent:1",)
    [first], _, _ = run(tmp_path, *words)
    [second], has_numba, _ = run(tmp_path, *words)
    assert_right([first, second], words * 2)
    assert (first[2], second[2], has_numba) == ("miss", "hit", False)
    rows, _, _ = run(tmp_path, *words, extra="+ 10")
    assert_right(rows, words, 10.0)
    assert rows[0][2] == "miss"


def test_a_function_that_does_not_fit_kernels_is_computed_by_python_also_in_the_next_process(
    tmp_path: Path,
) -> None:
    words = ("bent:1",)
    for outcome in ("miss", "hit"):
        rows, has_numba, _ = run(tmp_path, *words, extra="+ np.ones(3).sum() - 3")
        assert_right(rows, words)
        assert (rows[0][2], has_numba) == (outcome, outcome == "miss")


def test_what_is_damaged_of_a_function_is_compiled_anew(tmp_path: Path, cache_directory: Path) -> None:
    words = ("bent:1", "cumulated:1")
    run(tmp_path, *words, decorator="@numba.njit")
    with closing(sqlite3.connect(cache_directory / "v1" / "index.sqlite")) as database, database:
        query = "SELECT record.rowid, content FROM record JOIN entry ON entry.id = entry_id WHERE level != 'function'"
        rows = database.execute(query).fetchall()
        for row, content in rows:
            damaged = content[:-50] if row % 2 else content[:-9] + bytes(9)
            database.execute("UPDATE record SET content = ? WHERE rowid = ?", (damaged, row))
    assert len(rows) >= 3
    rows, _, counts = run(tmp_path, *words, decorator="@numba.njit")
    assert_right(rows, words)
    assert counts["hits"] == 0


def test_processes_that_call_a_function_at_once_compile_it_once(tmp_path: Path) -> None:
    words = ("cumulated:1",)
    write_ops(tmp_path, "@numba.njit")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: process(tmp_path, *words), range(3)))
    for rows, _, _ in found:
        assert_right(rows, words)
    assert sum(counts["misses"] for _, _, counts in found) == 1
    assert sum(counts["hits"] for _, _, counts in found) == 2


FILED = """
import sys
import numba, numpy as np
import engine, engine.tensor as pt
from ops import Bent, Cumulated, Elemwise
from outer import outer

class Filed(Bent):
    def numba_function(self, node):
        return outer

class FiledArray(Cumulated):
    def numba_function(self, node):
        @numba.njit
        def function(x):
            found = np.empty_like(x)
            for n in range(len(x)):
                found[n] = outer(x[n])
            return found
        return function

if sys.argv[1:] == ["by-numba"]:
    print(outer(1.0))
else:
    x = pt.vector("x")
    f = engine.function([x], [Elemwise(Filed(1))(x), FiledArray(1)(x)])
    print(*np.concatenate(f(np.ones(1))), f.cache_info.outcome)
"""


def test_what_numba_has_in_files_of_its_own_is_not_linked_into_entries(tmp_path: Path) -> None:
    """numba #8851: a function with cache=True is taken from its file when what it calls in another was
    edited.
    """
    write_ops(tmp_path, "@numba.njit")
    (tmp_path / "program.py").write_text(FILED)
    (tmp_path / "outer.py").write_text(
        "import numba\nfrom inner import inner\n\n@numba.njit(cache=True)\ndef outer(x):\n    return inner(x) * 2.0\n"
    )
    inner = "import numba\n\n@numba.njit\ndef inner(x):\n    return x + {}\n"
    (tmp_path / "inner.py").write_text(inner.format(1.0))
    assert printed(tmp_path, "by-numba") == ["4.0"]
    assert printed(tmp_path) == ["4.0", "4.0", "miss"]
    (tmp_path / "inner.py").write_text(inner.format(10.0))
    assert printed(tmp_path, "by-numba") == ["4.0"], "numba knows by now what its files depend on"
    assert printed(tmp_path) == ["22.0", "22.0", "miss"]
    assert printed(tmp_path) == ["22.0", "22.0", "hit"]


def printed(directory: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "program.py", *words],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(directory)]),
            "NUMBA_CACHE_DIR": str(directory / "numba"),
        },
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


CALLED = """
import sys
import engine, engine.tensor as pt
import numba
import numpy as np
from ops import Apply, Elemwise, Op, ScalarOp, floating

number = float(sys.argv[1])


@numba.njit
def lazy(x):
    return x * number


@numba.njit("f8(f8)")
def eager(x):
    return x + number


if sys.argv[1] != sys.argv[2]:
    assert lazy(1.0) == number
    number = float(sys.argv[2])


class Number(ScalarOp):
    __props__ = ()
    rule = staticmethod(floating)

    def _impl(self, x):
        raise AssertionError("numba computes it")

    def numba_function(self, node):
        return lambda x: eager(lazy(x))


class Array(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type.make_variable()])

    def numba_function(self, node):
        return lambda x: np.array([eager(lazy(value)) for value in x])


x = pt.vector("x")
functions = [engine.function([x], op(x) * 1.0) for op in (Elemwise(Number()), Array())]
print(*[f(np.array([1.0, 2.0])).tolist() for f in functions], *[f.cache_info.outcome for f in functions])
assert lazy(1.0) == float(sys.argv[1])
"""


def test_what_is_compiled_in_is_what_called_functions_are_now(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPS.format(imports="", decorator="", extra=""))
    (tmp_path / "called.py").write_text(CALLED)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "CACHEGRAPH_DIR": str(tmp_path / "cache"),
    }
    printed = [
        subprocess.run(
            [sys.executable, "called.py", before, "3"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for before in ("2", "3")
    ]
    assert printed == [f"[6.0, 9.0] [6.0, 9.0] {outcome} {outcome}" for outcome in ("miss", "hit")]
