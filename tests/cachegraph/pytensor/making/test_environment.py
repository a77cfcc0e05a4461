"""The adapter raises nothing in a program whose user has no place for a cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
NOBODY = 54321


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
def test_pytensor_compiles_for_a_user_without_a_home(tmp_path: Path) -> None:
    program = f"""
import os, pytensor, pytensor.tensor as pt, numpy as np  # without a home PyTensor itself cannot be imported
del os.environ["HOME"]
os.setresuid({NOBODY}, 0, 0)
import cachegraph.pytensor
cachegraph.pytensor.install()
for case in ({{}}, {{"CACHEGRAPH_MODE": "of", "CACHEGRAPH_DIR": "/proc/a"}}):
    os.environ.update(case)
    x = pt.vector()
    f = pytensor.function([x], pt.exp(x).sum(), mode="NUMBA")
    assert f(np.zeros(3)) == 3.0
    print(f.maker.cache_info.outcome)
"""
    environ = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PYTENSOR_FLAGS": os.environ["PYTENSOR_FLAGS"]}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.split()) == (0, ["bypass", "bypass"]), done.stderr
    assert done.stderr.count("no home directory") == 1
    assert done.stderr.count("found 'of'") == 1
