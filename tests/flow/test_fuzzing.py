"""Whatever bytes a reader of stored bytes is given, it says what is wrong with them in its own words,
and soon.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cachegraph import pickling
from cachegraph.errors import CachegraphError, InvalidEncoding, ObjectFormatError
from cachegraph.fingerprint.decoder import decode
from cachegraph.key import CacheKey, expanded
from cachegraph.object_code.elf import read_symbols
from cachegraph.store.protocol import Holder
from tests.cachegraph.pickling.hostile_pickles import TRUSTED, group, name, number, text, whole

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("fuzzing.py")
FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"
MUTANTS = 60_000 if FULL else 1_000
SEEDS = range(6) if FULL else range(1)
READERS = (
    *(
        "pickle",
        "stored graph",
        "record",
        "entry file",
        "description of an entry file",
        "encoding",
        "program",
    ),
    *("kernel", "object code", "claim"),
)


@pytest.mark.stress
@pytest.mark.parametrize("seed", SEEDS)
def test_mutants_of_what_is_stored_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "cache"), str(seed), str(MUTANTS)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"it ended at {done.stderr[-2000:]}"
    found = json.loads(done.stdout)
    assert found == dict.fromkeys(READERS, "")


# Pickles, opcode by opcode

_NAMES = (
    *(
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("builtins", "slice"),
    ),
    *(("numpy._core.multiarray", "scalar"), ("numpy._core.numeric", "_frombuffer"), ("functools", "partial")),
    *(("engine.graph.fgraph", "_load_graph"), ("engine.scalar.type", "scalar_type"), ("builtins", "range")),
    *(("engine.tensor.type", "tensor_type"), ("engine.tensor.elemwise", "Elemwise"), ("os", "system")),
    *(
        ("engine.scalar.arithmetic", "Add"),
        ("engine.inner.composite", "Composite"),
        ("engine.inner.scan", "Scan"),
    ),
)
_PIECES = st.one_of(
    st.sampled_from([name(*named) for named in _NAMES]),
    st.sampled_from([b"]", b"}", b")", b"\x8f", b"(", b"N", b"\x88", b"\x89", b"0", b"1", b"\x94"]),
    st.sampled_from([b"\x85", b"\x86", b"\x87", b"t", b"R", b"\x81", b"\x92", b"b", b"a", b"e", b"s", b"u"]),
    st.sampled_from([b"\x90", b"\x91", b"Q"]),
    st.sampled_from(["f8", "O8", "V8", "U4", "<", "|", "C", "float64", "x"]).map(text),
    st.integers(-(2**70), 2**70).map(number),
    st.integers(0, 9).map(lambda n: b"K" + bytes((n,))),
    st.integers(0, 9).map(lambda n: b"h" + bytes((n,))),
    st.binary(max_size=16).map(lambda content: b"C" + bytes((len(content),)) + content),
    st.sampled_from([group(b"K\x00"), group(), group(text("f8"), b"\x89", b"\x88")]),
)


@settings(
    max_examples=20_000 if FULL else 300,
    derandomize=not FULL,
)
@given(st.lists(_PIECES, max_size=40))
@example([name("numpy", "dtype"), group(text("f8"), b"\x89", b"\x88"), b"R", b"K\x07", b"b"])
def test_any_opcodes_are_loaded_or_refused(pieces: list[bytes]) -> None:
    with suppress(CachegraphError):
        pickling.loads(whole(*pieces), TRUSTED, (7, [8]))


# Found by reading


def test_a_deep_encoding_is_invalid() -> None:
    with pytest.raises(InvalidEncoding):
        decode(b"\x01" + b"[\x01" * 200_000 + b"N")


@pytest.mark.parametrize("content", [b"", b"\x01" * 40, b"\xff" * 90])
def test_what_is_no_key_is_refused(content: bytes) -> None:
    with pytest.raises(CachegraphError):
        CacheKey.parse(content)


@pytest.mark.parametrize(
    "compressed", [b"", b"x", zlib.compress(bytes(300 * 2**20), 1), zlib.compress(b"abc")[:-5]], ids=range(4)
)
def test_what_expands_to_no_encoding_is_refused(compressed: bytes) -> None:
    with pytest.raises(InvalidEncoding):
        expanded(compressed)


@pytest.mark.parametrize(
    "said",
    [{"host": "a", "pid": float("inf"), "since": 1}, {"host": "a", "pid": 1, "since": float("nan")}, {}],
)
def test_a_holder_that_says_what_nobody_is_is_refused(said: dict[str, object]) -> None:
    with pytest.raises((ValueError, KeyError)):
        Holder.from_document(said)


def test_an_object_with_many_tables_of_many_symbols_is_refused_soon() -> None:
    sections = b"".join(struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, 2**20, 0, 0, 0, 0) for _ in range(10_000))
    header = b"\x7fELF\x02\x01".ljust(0x28, b"\0") + struct.pack("<Q", 64)
    header = header.ljust(0x3A, b"\0") + struct.pack("<HHH", 64, 10_000, 0)
    due = time.monotonic() + 20
    with pytest.raises(ObjectFormatError):
        read_symbols(header.ljust(64, b"\0") + sections + bytes(2**20))
    assert time.monotonic() < due
