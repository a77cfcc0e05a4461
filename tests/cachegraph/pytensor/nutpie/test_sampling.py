"""A second process samples with nutpie, and numba compiles nothing in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]


def sampled(cache: Path | None) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("CACHEGRAPH_PYTENSOR", None)
    if cache is not None:
        environment |= {"CACHEGRAPH_DIR": str(cache), "CACHEGRAPH_PYTENSOR": "numba"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cachegraph.pytensor.nutpie.sampling_process"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_draws_the_same(tmp_path: Path) -> None:
    first, second = (sampled(tmp_path / "cache") for _ in range(2))
    assert "logp_numba" in str(first["compiled"])
    assert second["compiled"] == []
    assert first["sampler"] == second["sampler"] == "nutpie"
    for draws in ("draws", "draws of new data"):
        assert first[draws] == second[draws]
    assert first["draws"] != first["draws of new data"]
