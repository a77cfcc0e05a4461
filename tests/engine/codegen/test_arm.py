"""Code for 64-bit Arm, emitted here: objects of the accepted form, with symbols that every C library has.

Nothing of it runs here. Its results on such a machine are those of the functions' tests there.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.runtime.externals import EXTERNALS, PROCESS_SYMBOLS, is_allowed

PROCESS = Path(__file__).with_name("arm_process.py")
ROOT = PROCESS.parents[3]

OF_ARM = 183
OF_OTHER_SYSTEMS = {"_fltused", "__bzero"}
"""Symbols of Windows and of macOS."""

HERE = """
import json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from tests.engine.codegen.arm_process import functions
made = list(functions())
print(json.dumps([[f.cache_info.outcome, f.cache_info.found["kernel"]] for f in made]), float(made[0](np.ones(3))[0][0]))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="this is no x86-64 machine"),
]


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Return a cache with kernels for Arm, and what is seen of each."""
    directory = tmp_path_factory.mktemp("arm") / "cache"
    done = subprocess.run(
        [sys.executable, PROCESS, directory],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, refused = json.loads(done.stdout)
    assert refused > 50  # most bytes are code, of which nothing is known
    return directory, found


def test_every_kernel_the_machine_and_the_entry_are_objects_for_arm(arm: tuple[Path, list[Any]]) -> None:
    _, found = arm
    assert len(found) > 30
    assert {processor for _, processor, *_ in found} == {OF_ARM}
    assert all(alignment <= 16 for _, _, alignment, *_ in found)
    assert any(kinds for *_, kinds in found)


def test_their_undefined_symbols_are_those_of_the_c_library_and_our_externals(
    arm: tuple[Path, list[Any]],
) -> None:
    library = ctypes.CDLL(None)
    needed = {symbol for *_, symbols, _ in arm[1] for symbol in symbols}
    assert needed
    assert all(map(is_allowed, needed))
    of_process = needed & PROCESS_SYMBOLS
    assert not of_process & OF_OTHER_SYSTEMS
    assert all(hasattr(library, symbol) for symbol in of_process)
    assert any(symbol in EXTERNALS for symbol in needed)
    vectorized = {symbol for symbol in needed if symbol.startswith("_ZGV")}
    assert not vectorized  # libmvec's names belong to one processor


def test_no_entry_for_arm_is_a_hit_here(arm: tuple[Path, list[Any]]) -> None:
    directory, _ = arm
    done = subprocess.run(
        [sys.executable, "-c", HERE, ROOT],
        env={**os.environ, "CACHEGRAPH_DIR": str(directory)},
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes, _, value = done.stdout.strip().rpartition(" ")
    found = json.loads(outcomes)
    assert [outcome for outcome, _ in found] == ["miss"] * len(found)
    assert found[0][1][0] == 0
    assert float(value) == pytest.approx(2.718281828459045, rel=1e-15)
