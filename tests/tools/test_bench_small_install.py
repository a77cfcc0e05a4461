"""The bench of a small installation: sizes and times of an environment, and the budget."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.tools.programs import load_program

bench = load_program("bench/small_install.py")
HERE = Path(sys.executable)


def test_sizes_are_those_of_installed_packages() -> None:
    assert bench.megabytes(HERE)["numpy"] > 10


def test_a_hit_is_measured_beside_the_import_of_numpy(tmp_path: Path) -> None:
    found = bench.timing(HERE, tmp_path / "cache", 1)
    assert found["milliseconds"]["import numpy"] > 10
    assert 0 < found["ratio"] < 20


@pytest.mark.parametrize(("ratio", "code"), [(0.5, 0), (1.5, 1)])
def test_a_ratio_above_the_budget_fails_the_check(
    ratio: float,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bench, "built", lambda directory: "cachegraph.whl")
    monkeypatch.setattr(bench, "environment", lambda directory, *installs: HERE)
    monkeypatch.setattr(bench, "megabytes", lambda python: {"numpy": 68.0})
    monkeypatch.setattr(bench, "timing", lambda python, cache, rounds: {"ratio": ratio})
    monkeypatch.setattr(sys, "argv", ["small_install.py", "--check"])
    assert bench.main() == code
    assert json.loads(capsys.readouterr().out)["ratio"] == ratio
