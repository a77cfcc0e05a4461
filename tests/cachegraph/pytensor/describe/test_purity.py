"""Code that may read files, clocks or the environment before a function is stored: a bypass."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import wrap_py
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from cachegraph.pytensor import explain
from tests.cachegraph.pytensor.code_process import ROOT

TABLE = "factor.txt"


def opened() -> float:
    with open(TABLE) as file:
        return float(file.read())


def unpacked() -> float:
    with gzip.open(TABLE) as file:
        return float(file.read())


READING: dict[str, Callable[[], Any]] = {
    "numpy": lambda: np.loadtxt(TABLE),
    "open": opened,
    "path": lambda: float(Path(TABLE).read_text()),
    "clock": lambda: time.time(),
    "random": lambda: random.random(),
    "generator": lambda: np.random.default_rng().normal(),
    "archive": unpacked,
    "environment": lambda: float(os.getenv("HOME", "1")),
}


class Calling(Op):
    __props__ = ("read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [pt.as_tensor_variable(x)], [pt.dvector()])

    def perform(self, node: Any, inputs: Any, storage: Any) -> None:
        storage[0][0] = inputs[0] * self.scale()

    def scale(self) -> Any:
        return self.read()


class Shaped(Calling):
    def infer_shape(self, fgraph: Any, node: Any, shapes: Any) -> Any:
        return [(int(self.read()),)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / TABLE).write_text("3.0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "3.0")


def outcome(result: Any) -> str:
    x = pt.vector("x")
    found = explain(pytensor.function([x], x * result, mode="NUMBA"))
    assert found.outcome != "bypass" or "external state" in found.reason, found.reason
    return found.outcome


@pytest.mark.parametrize("read", READING.values(), ids=READING)
def test_an_op_that_reads_what_lies_outside_is_a_bypass_where_it_is_folded(
    adapter: Any, read: Callable[[], Any]
) -> None:
    assert [outcome(Calling(read)(np.arange(2.0))) for _ in range(2)] == ["bypass", "bypass"]


def test_what_an_op_of_a_function_reads_is_looked_through(adapter: Any) -> None:
    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def loaded(x: Any) -> Any:
        return x * opened()

    assert outcome(loaded(pt.constant(np.arange(2.0)))) == "bypass"
    within = pytensor.compile.builders.OpFromGraph([y := pt.vector()], [loaded(y)])
    assert outcome(within(pt.constant(np.arange(2.0)))) == "bypass"


def test_an_op_may_read_when_the_function_is_called(adapter: Any) -> None:
    """A folded Op may compute."""
    y = pt.vector("y")
    for expected in ("miss", "hit"):
        assert explain(pytensor.function([y], Calling(opened)(y), mode="NUMBA")).outcome == expected
        assert outcome(Calling(lambda: np.exp(2.0))(np.arange(2.0))) == expected


def test_a_shape_that_is_read_is_a_bypass(adapter: Any) -> None:
    y = pt.vector("y")
    f = pytensor.function([y], Shaped(opened)(y).shape[0], mode="NUMBA")
    assert explain(f).outcome == "bypass"


def test_implementations_and_rewrites_that_read_are_bypasses() -> None:
    script = ROOT / "tests/cachegraph/pytensor/reading_process.py"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "an Op with an implementation that reads": "bypass",
        "another Op": "miss",
        "a rewrite that reads": "bypass",
    }
