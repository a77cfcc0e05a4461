"""The scripts of the gallery run on the engine, and PyTensor gives the same results."""

import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"


@pytest.mark.slow
def test_every_script_gives_what_pytensor_gives():
    pytest.importorskip("pytensor")
    program = GALLERY / "beside_pytensor.py"
    found = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    rows = [line.split() for line in found.stdout.splitlines()]
    assert sorted(row[0] for row in rows) == sorted(
        path.stem for path in GALLERY.glob("*.py") if path != program
    )
    assert all(row[2:] == ["results", "agree"] and int(row[1]) > 0 for row in rows)
    assert len(rows) >= 30
