"""Readers of stored bytes, samples of what they read, and mutants of these.

A mutant may be repaired: given the checksums that its reader wants, so that what comes after these
is read too.
"""

from __future__ import annotations

import json
import os
import pickletools
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import engine
import engine.tensor as pt
from cachegraph import pickling
from cachegraph.cache import Artifact
from cachegraph.errors import CachegraphError, ObjectFormatError
from cachegraph.fingerprint.decoder import decode as decode_encoding
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import digest
from cachegraph.key import CacheKey
from cachegraph.object_code.elf import read_symbols
from cachegraph.store.entry import Entry
from cachegraph.store.protocol import Holder
from cachegraph.store.record import Record, decode
from cachegraph.store.record import encode as encode_record
from cachegraph.store.shared.entry_file import read_description, read_record, write_entry
from engine.compiling.inner_graphs import load_graph
from engine.runtime.container import unpack_kernel
from engine.runtime.errors import BackendError
from engine.runtime.program import ProgramFormatError, unpack_program
from tests.cachegraph.fingerprint.golden_cases import cases
from tests.cachegraph.pickling.hostile_pickles import TRUSTED

KEY = CacheKey.build("kernel", {"loops": encode((1, "a"))})
SECONDS = 10


class Reader(NamedTuple):
    """What reads `samples`, what it may raise, and how a mutant gets its checksums."""

    read: Callable[[bytes], object]
    samples: list[bytes]
    raises: tuple[type[BaseException], ...] = ()
    repair: Callable[[bytes], bytes] = lambda content: content


def readers(cache: Path) -> dict[str, Reader]:
    """Every reader, with samples that functions made in the directory `cache` give."""
    stored = _stored(cache)
    record = encode_record(KEY, Record(b"payload", None, {"a": "ab" * 32}, {"compile": 1.5}))
    return {
        "pickle": Reader(lambda content: pickling.loads(content, TRUSTED), _pickles(), (CachegraphError,)),
        "stored graph": Reader(
            lambda content: load_graph(content, (np.arange(40.0),), {}, lambda _: None),
            stored["graph"],
            (CachegraphError,),
        ),
        "record": Reader(lambda content: decode(content, KEY), [record], (), _checked(4)),
        "entry file": Reader(lambda content: read_record(content, KEY), [_entry_file()], (), _repaired_entry),
        "description of an entry file": Reader(
            lambda content: read_description(content, KEY.digest), [_entry_file()], (), _repaired_entry
        ),
        "encoding": Reader(
            decode_encoding, [encode(value) for value in cases().values()], (CachegraphError,)
        ),
        "program": Reader(unpack_program, stored["function"], (ProgramFormatError,)),
        "kernel": Reader(unpack_kernel, stored["kernel"], (BackendError,), _repaired_kernel),
        "object code": Reader(read_symbols, _objects(stored["kernel"]), (ObjectFormatError,)),
        "claim": Reader(
            _claimed, [b'{"host": "a", "pid": 12, "since": 1.7e9}'], (ValueError, KeyError, TypeError)
        ),
    }


def _claimed(content: bytes) -> str:
    return str(Holder.from_document(json.loads(content)))


def _stored(cache: Path) -> dict[str, list[bytes]]:
    """The payloads of entries and blobs, by level, of a few functions."""
    from cachegraph.caching.writing import EntryWriter

    os.environ["CACHEGRAPH_DIR"] = str(cache)
    found: dict[str, list[bytes]] = {"function": [], "kernel": [], "op": [], "graph": []}
    keep_all = EntryWriter.keep_all

    def noting(self: EntryWriter, built: Mapping[CacheKey, tuple[Artifact, float]]) -> Any:
        for key, (artifact, _) in built.items():
            found[key.level].append(artifact.payload)
            found["graph"] += artifact.blobs.values()
        return keep_all(self, built)

    EntryWriter.keep_all = noting  # type: ignore[method-assign]
    try:
        x, y = pt.vector("x"), pt.scalar("y")
        inner = engine.OpFromGraph([x, y], [pt.exp(x * y) * 2 + pt.constant(np.arange(40.0))[:1], y + 1])
        engine.function([x, y], [*inner(x, y), pt.sum(x[1:]), x[x > 0]])
    finally:
        EntryWriter.keep_all = keep_all  # type: ignore[method-assign]
    found["graph"] += found["op"]
    return found


def _pickles() -> list[bytes]:
    values = (
        [np.arange(3.0), {"a": (1, 2.5, b"x")}, slice(1, 2), np.float32(1), np.arange(4)[::2]],
        [
            np.zeros(2, [("a", "f8"), ("b", "i2")]),
            np.array([None, 1]),
            np.array("2020", "M8[s]"),
            {1, (2, "b")},
        ],
        [
            2**100,
            frozenset({1.5, "a"}),
            bytearray(b"abc"),
            range(3),
            complex(1, 2),
            np.dtype(">U7"),
            "x" * 300,
        ],
    )
    return [pickling.dumps(value) for value in values]


def _entry_file() -> bytes:
    record = Record(b"payload", None, {"a": "ab" * 32}, {"compile": 1.5})
    fields = {name: _plain(name) for name in Entry._fields if name != "digest"}
    return write_entry(KEY, record, Entry(KEY.digest, **fields), [KEY.digest])


def _plain(name: str) -> Any:
    return {"level": "kernel", "summary": "a kernel"}.get(name, 1)


def _objects(kernels: list[bytes]) -> list[bytes]:
    return [unpack_kernel(kernel).code for kernel in kernels[:2]]


# Repairs


def _checked(start: int) -> Callable[[bytes], bytes]:
    """Puts the checksum of all that follows it at `start`."""
    return lambda content: content[:start] + digest(content[start + 16 :]) + content[start + 16 :]


def _repaired_entry(content: bytes) -> bytes:
    """The record within, and the file around it."""
    if len(content) > 28:
        (size,) = struct.unpack_from(">I", content, 20)
        end = 28 + min(size, len(content) - 28)
        content = content[:28] + _checked(4)(content[28:end]) + content[end:]
    return _checked(4)(content)


def _repaired_kernel(content: bytes) -> bytes:
    if len(content) < 16:
        return content
    (size,) = struct.unpack_from("<I", content, 12)
    return content[:size] + digest(content[:size]) + content[size + 16 :]


# Mutants


def mutant(random: Random, samples: list[bytes]) -> bytes:
    """One of the samples, changed in one to three places."""
    content = random.choice(samples)
    for _ in range(random.randint(1, 3)):
        content = random.choice(_CHANGES)(random, content, samples)
    return content


def _flipped(random: Random, content: bytes, _: list[bytes]) -> bytes:
    at = random.randrange(len(content) + 1)
    return (
        content[:at] + bytes(b ^ 1 << random.randrange(8) for b in content[at : at + 1]) + content[at + 1 :]
    )


def _cut(random: Random, content: bytes, _: list[bytes]) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def _without(random: Random, content: bytes, _: list[bytes]) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + content[at + random.randint(1, 9) :]


def _repeated(random: Random, content: bytes, _: list[bytes]) -> bytes:
    at, size = random.randrange(len(content) + 1), random.randint(1, 60)
    return content[: at + size] + content[at : at + size] * random.randint(1, 9) + content[at + size :]


def _spliced(random: Random, content: bytes, samples: list[bytes]) -> bytes:
    other = random.choice(samples)
    return content[: random.randrange(len(content) + 1)] + other[random.randrange(len(other) + 1) :]


def _overwritten(random: Random, content: bytes, _: list[bytes]) -> bytes:
    at = random.randrange(len(content) + 1)
    new = random.choice(
        (
            b"\xff" * 4,
            b"\0" * 4,
            b"\xff" * 8,
            b"\0\0\0\x80",
            b"\x7f",
            b"[" * 40,
            b'"',
            b"1e999",
            b"NaN",
            b"-1",
            b"null",
        )
    )
    return content[:at] + new + content[at + len(new) :]


def _other_opcode(random: Random, content: bytes, _: list[bytes]) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + random.choice(_OPCODES) + content[at + random.randint(0, 1) :]


_OPCODES = [op.code.encode("latin-1") for op in pickletools.opcodes]
_CHANGES = (_flipped, _cut, _without, _repeated, _spliced, _overwritten, _other_opcode)


def fuzz(reader: Reader, seed: int, count: int) -> str:
    """Read `count` mutants; return what went wrong with the first that did, or nothing."""
    random = Random(seed)
    for _ in range(count):
        content = mutant(random, reader.samples)
        if random.random() < 0.7:
            content = reader.repair(content)
        wrong = _wrong(reader, content)
        if wrong:
            return f"{content.hex()}: {wrong}"
    return ""


def _wrong(reader: Reader, content: bytes) -> str:
    signal.alarm(SECONDS)
    try:
        reader.read(content)
    except reader.raises:
        return ""
    except BaseException:
        return traceback.format_exc()[-1500:]
    finally:
        signal.alarm(0)
    return ""


def _late(*_: object) -> None:
    raise TimeoutError(f"it takes more than {SECONDS} s")


def main(cache: str, seed: int, count: int, *names: str) -> None:
    """Print what went wrong, by the name of the reader, as JSON."""
    signal.signal(signal.SIGALRM, _late)
    known = readers(Path(cache))
    found = {}
    for name in names or known:
        print(name, file=sys.stderr, flush=True)  # whoever finds a crash knows where
        found[name] = fuzz(known[name], seed, count)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
