"""The code of C entries comes from the cache: in a second process, and not if it is damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachegraph.cache import Artifact, default_cache
from cachegraph.fingerprint.encoding import encode
from engine.codegen.c_entry.source import c_entry_source
from engine.compiling.surroundings import kernel_key
from engine.runtime.c_entry import C_ENTRY_VERSION
from engine.runtime.target import process_level

ROOT = Path(__file__).parents[3]
EXPECTED = {"status": 0, "found": [-14.0, -2.0, -4.0, -6.0]}


def answer() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.compiling.c_entry_process"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout.splitlines()[-1])


def stored() -> tuple[Any, bytes]:
    """Return the key of the entry's code, and what the cache has under it."""
    key = kernel_key(encode(("c entry", C_ENTRY_VERSION, c_entry_source())), process_level())
    return key, default_cache().lookup(key).payload


def test_a_second_process_compiles_nothing() -> None:
    assert answer() == {**EXPECTED, "compiles": True}
    assert answer() == {**EXPECTED, "compiles": False}


@pytest.mark.parametrize(
    "damage", [lambda code: code[:1000], lambda code: b"", lambda code: code[:-1] + b"?"]
)
def test_damaged_code_is_compiled_again(damage: Any) -> None:
    answer()
    key, code = stored()
    default_cache().store(key, Artifact(damage(code), summary="damaged"))
    assert answer() == {**EXPECTED, "compiles": True}
    assert stored()[1] == code
    assert answer() == {**EXPECTED, "compiles": False}
