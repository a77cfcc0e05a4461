"""Changes between making a function and its first call: PyTensor's results, and nothing stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from cachegraph.pytensor import explain
from tests.cachegraph.pytensor.code_process import ROOT


class Overwriting(Op):
    """An Op that returns a copy of its input, and overwrites the input."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, storage: Any) -> None:
        storage[0][0] = inputs[0].copy()
        inputs[0][:] = -1.0


def in_fresh_process(tmp_path: Path, way: str, when: str) -> tuple[dict[str, Any], dict[str, int]]:
    script = ROOT / "tests/cachegraph/pytensor/late_process.py"
    flags = f"base_compiledir={tmp_path / way},numba__cache={way == 'adapter'}"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTENSOR_FLAGS": flags}
    done = subprocess.run(
        [sys.executable, script, way, when], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found, bypasses = json.loads(done.stdout)
    return found, bypasses


def expected(scale: float, factor: float) -> dict[str, Any]:
    """Return PyTensor's results: folding and lookups happen before the change, numba's freezing after it."""
    x = np.array([0.1, 0.2, 0.3])
    sums = {}
    for name, length in {"frozen": 40, "too large to freeze": 50_000}.items():
        table = np.linspace(0.0, 1.0, 3 * length).reshape(3, length)
        sums[name] = np.exp(scale * table.T * x).sum(axis=0) + table[:2, 1].sum()
    return sums | {"global": x * factor, "registered": x + 1.0, "table 1": x * 50.0, "table 2": x * 100.0}


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-10, err_msg=name)


@pytest.mark.slow
def test_pytensor_compiles_what_changed_before_the_first_call(tmp_path: Path) -> None:
    assert_same(in_fresh_process(tmp_path, "plain", "late")[0], expected(2.0, 5.0))


@pytest.mark.slow
def test_what_changes_before_the_first_call_is_compiled_and_not_kept(tmp_path: Path) -> None:
    missed, bypasses = in_fresh_process(tmp_path, "adapter", "late")
    assert bypasses["changed-while-compiling"] == 3
    assert_same(missed, expected(2.0, 5.0))
    for when, wanted in (("never", expected(1.0, 2.0)), ("late", expected(2.0, 5.0))):
        found, _ = in_fresh_process(tmp_path, "adapter", when)
        assert_same(found, wanted)


def test_an_op_that_changes_when_it_is_folded_is_not_kept(adapter: Any) -> None:
    x = pt.vector("x")
    for _ in range(2):
        f = pytensor.function([x], x + Overwriting()(pt.constant(np.arange(3.0))), mode="NUMBA")
        assert explain(f).outcome == "bypass"
        assert "the data of a constant has changed" in explain(f).reason
        assert f(np.zeros(3)).tolist() == [0.0, 1.0, 2.0]
