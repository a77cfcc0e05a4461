"""The encodings of known values are the same in every process, under every hash seed and start method."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachegraph.fingerprint import encode

PROGRAM = Path(__file__).with_name("golden_cases.py")
ROOT = Path(__file__).resolve().parents[3]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "fingerprints.json").read_text())


@pytest.mark.parametrize(
    ("start_method", "hash_seed"),
    [("here", "0"), ("here", "1"), ("here", "random"), ("spawn", "random"), ("fork", "random")],
)
def test_a_fresh_process_gives_the_known_answers(start_method: str, hash_seed: str, tmp_path: Path) -> None:
    if start_method == "fork" and not hasattr(os, "fork"):
        pytest.skip("this platform has no fork")
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, str(PROGRAM), start_method]
    done = subprocess.run(program, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == GOLDEN


@pytest.mark.parametrize(
    ("value", "encoding"),
    [
        (None, b"\2N"),
        (5, b"\2i\1\5"),
        (-129, b"\2i\2\x7f\xff"),
        (1.0, b"\2f\0\0\0\0\0\0\xf0\x3f"),
        ("é", b"\2s\2\xc3\xa9"),
        ((1, "a"), b"\2(\2i\1\1s\1a"),
        ({"b": 1, "a": None}, b"\2{\2s\1aNs\1bi\1\1"),
        ({b"b", b"a"}, b"\2<\2b\1ab\1b"),
        (b"x" * 300, b"\2b\xf9\x2c\1" + b"x" * 300),
        (int, b"\2C\x08builtins\3int"),
    ],
)
def test_an_encoding_is_what_the_grammar_says(value: object, encoding: bytes) -> None:
    assert encode(value) == encoding
