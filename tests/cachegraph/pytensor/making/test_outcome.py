"""What `explain` tells of a function: all that was spent on it, the code compiled at its first call too."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.ops import wrap_py

from cachegraph.pytensor import explain
from tests.cachegraph.pytensor.entry_points import needs_engine
from tests.terminals import run_on_terminal

ROOT = Path(__file__).resolve().parents[4]
pytestmark = pytest.mark.filterwarnings("ignore:Numba will use object mode")


def _sum() -> Any:
    x = pt.vector("x")
    return pytensor.function([x], pt.exp(x).sum(), mode="NUMBA")


def test_what_is_compiled_at_the_first_call_counts(adapter):
    made = explain(f := _sum())
    assert (made.compilations, "compile" in made.seconds) == (0, False)
    f(np.ones(2))
    called = explain(f)
    compiling = called.seconds["compile"]
    assert compiling > 0.05
    assert called.seconds["total"] == pytest.approx(made.seconds["total"] + compiling)
    assert {**called.seconds, "total": 0, "compile": 0} == {**made.seconds, "total": 0, "compile": 0}
    assert called.compilations == 1
    assert f"compile {compiling:.2f}" in str(called)
    f(np.ones(2))
    assert explain(f).seconds == called.seconds


def test_what_is_found_at_the_first_call_compiled_nothing(adapter):
    _sum()(np.ones(2))
    found = explain(f := _sum())
    f(np.ones(2))
    assert explain(f).found == {"function": [1, 0], "numba": [1, 0]}
    assert explain(f).compilations == 0
    assert explain(f).seconds == found.seconds


@wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
def _doubled(x):
    return x * 2


def test_code_that_cannot_be_stored_counts_each_time(adapter):
    x = pt.dvector("x")
    for _ in range(2):
        f = pytensor.function([x], _doubled(x).sum(), mode="NUMBA")
        assert f(np.ones(2)) == 4
        found = explain(f)
        assert found.compilations == 1, found
        assert found.seconds["total"] >= found.seconds["compile"] > 0.01
        f(np.ones(2))
        assert explain(f).seconds == found.seconds


def test_linking_counts_for_a_function_that_bypasses_the_cache(adapter, monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    found = explain(_sum())
    assert found.outcome == "bypass"
    assert found.seconds["total"] > found.seconds["link"] > 0


@needs_engine
def test_compiling_counts_on_the_engine(adapter):
    import engine.pytensor

    adapter.install(backend="engine")
    x = pt.vector("x")
    found = explain(f := pytensor.function([x], pt.exp(x * 3).sum()))
    [spent] = re.findall(r"the engine computes \d+ nodes: miss, (\d+\.\d+) s", engine.pytensor.explain(f))
    compiling = f.vm.jit_fn.steps[0].function.cache_info.seconds["compile"]
    assert found.seconds["total"] > found.seconds["link"] > compiling > 0
    assert float(spent) >= compiling - 0.005
    f(np.ones(2))
    assert explain(f).seconds == found.seconds


# Each text is drawn when it is set: on a busy machine, the thread that draws may miss a short one.
SHOWN = """
import cachegraph.waiting_line as waiting

class Line(waiting._Line):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "doing" and value:
            self._draw(value)

waiting._Line = Line
import numpy as np, pytensor, pytensor.tensor as pt, cachegraph.pytensor
cachegraph.pytensor.install()
x = pt.vector("x")
f = pytensor.function([x], pt.exp(x).sum(), mode="NUMBA", name="mine")
print(f(np.zeros(2)))
"""


def test_the_terminal_shows_rewriting_linking_and_compiling(cache_directory):
    command, environment = [sys.executable, "-c", SHOWN], os.environ | {"PYTHONPATH": str(ROOT)}
    ran = run_on_terminal(command, environment, only_errors=True)
    assert (ran.code, ran.output) == (0, b"2.0\n")
    shown = ran.shown.decode()
    texts = ("PyTensor rewrites mine", "PyTensor links mine", "numba compiles a function")
    places = [shown.index(text) for text in texts]
    assert places == sorted(places)
    assert shown.endswith("\r")
    assert run_on_terminal(command, environment, only_errors=True).shown == b""
