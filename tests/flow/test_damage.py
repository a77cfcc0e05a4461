"""A store that is damaged, deleted, unwritable or full never raises into `function` and never gives a
wrong result.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
from cachegraph import pickling
from cachegraph.cache import Artifact, Cache, Hit, default_cache
from cachegraph.key import CacheKey
from engine.compiling.inner_graphs import OPTIMIZED
from engine.compiling.key import function_key
from engine.runtime.load import process_loader
from engine.runtime.program import MAGIC, KernelUse, Program, pack_program, unpack_program
from tests.flow.model_process import expected, in_fresh_process, report, softened

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a damaged store is tried in forked children")

EXPECTED = expected("softened")


def assert_right(found: dict[str, Any]) -> None:
    for result, due in zip(found["results"], EXPECTED, strict=True):
        np.testing.assert_allclose(result, due, rtol=1e-13)


def in_child(work: Callable[[], Any]) -> Any:
    """What `work` gives in a forked child that has linked no kernel yet; raises AssertionError if it fails
    or dies.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            process_loader.cache_clear()
            logging.disable()
            answer = ("fine", work())
            status = 0
        except BaseException:
            answer = ("failed", traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, pickle.loads(content)[1] if content else f"the child died with status {status}"
    return pickle.loads(content)[1]


def use(directory: Path, times: int = 2) -> list[tuple[str, str]]:
    """Make the function and call it, as a process that finds this store would; outcome and reason of each
    time.
    """
    os.environ["CACHEGRAPH_DIR"] = str(directory)
    outcomes = []
    for _ in range(times):
        found = report("softened")
        assert_right(found)
        outcomes.append((found["outcome"], found["reason"]))
    default_cache().flush()
    return outcomes


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two copies of a store that has the function: all in the index file, and all in the write-ahead log."""
    origin = tmp_path_factory.mktemp("damage") / "closed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(origin))
        report("softened")
        logged = Path(shutil.copytree(origin, origin.parent / "logged"))
        default_cache()._store.close()
    assert (logged / "v1" / "index.sqlite-wal").stat().st_size > 0
    return {"closed": origin, "logged": logged}


@pytest.fixture
def store(stores: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the closed store, to damage."""
    return Path(shutil.copytree(stores["closed"], tmp_path / "store"))


@pytest.fixture
def open_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """The cache of this process on `store`."""
    monkeypatch.setenv("CACHEGRAPH_DIR", str(store))
    return default_cache()


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.endswith("-shm"))


def test_a_sound_store_gives_hits(store: Path) -> None:
    assert in_child(lambda: use(store)) == [("hit", ""), ("hit", "")]


# Bytes that are not what was written


def flip(content: bytearray, source: random.Random) -> None:
    content[source.randrange(len(content))] ^= 1 << source.randrange(8)


def scribble(content: bytearray, source: random.Random) -> None:
    begin = source.randrange(len(content))
    content[begin : begin + 512] = source.randbytes(min(512, len(content) - begin))


def truncate(content: bytearray, source: random.Random) -> None:
    del content[source.randrange(len(content)) :]


def clear(content: bytearray, source: random.Random) -> None:
    begin = source.randrange(len(content)) // 4096 * 4096
    content[begin : begin + 4096] = bytes(min(4096, len(content) - begin))


def damage_and_use(stores: dict[str, Path], directory: Path, how: Any, rounds: int) -> set[str]:
    """Damage one place of a copy of a store, and use it, so many times; all reasons that were given."""
    source = random.Random(how.__name__)
    reasons = set()
    for number in range(rounds):
        copy = directory / str(number)
        shutil.copytree(stores["logged" if number % 2 else "closed"], copy)
        path = source.choice(files(copy))
        content = bytearray(path.read_bytes())
        how(content, source)
        path.write_bytes(content)
        # An index found damaged while something is stored is set aside with all it had: the next use stores the rest.
        *outcomes, last = in_child(lambda copy=copy: use(copy, 3))
        assert last == ("hit", ""), (path.name, outcomes)
        reasons.update(reason for _, reason in outcomes)
        shutil.rmtree(copy)
    return reasons


@pytest.mark.parametrize("how", [flip, scribble, truncate, clear])
def test_damage_anywhere_is_a_miss_or_nothing_and_heals(
    stores: dict[str, Path], tmp_path: Path, how: Any
) -> None:
    assert damage_and_use(stores, tmp_path, how, 12) <= {
        "",
        "never-seen",
        "damaged",
        "unreadable",
        "foreign-format",
    }


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\0" + bytes(4080)])
def test_an_index_that_is_none_is_a_miss_and_heals(store: Path, content: bytes) -> None:
    (store / "v1" / "index.sqlite").write_bytes(content)
    first, second = in_child(lambda: use(store))
    assert (first[0], second) == ("miss", ("hit", ""))


def test_a_directory_in_the_place_of_the_index_is_a_miss(store: Path) -> None:
    (store / "v1" / "index.sqlite").unlink()
    (store / "v1" / "index.sqlite").mkdir()
    assert in_child(lambda: use(store))[0][0] == "miss"


def test_missing_blobs_are_no_miss_but_a_graph_that_is_made_anew(store: Path) -> None:
    shutil.rmtree(store / "v1" / "blobs", ignore_errors=True)

    def look() -> Any:
        os.environ["CACHEGRAPH_DIR"] = str(store)
        inputs, outputs, _, _ = softened()
        f = engine.function(inputs, outputs)
        return f.cache_info.outcome, engine.dprint(f, file="str")

    outcome, text = in_child(look)
    assert outcome == "hit"
    assert "Composite" in text


# A store that goes away


def test_a_store_that_is_deleted_while_it_is_open_is_made_anew(open_store: Cache, store: Path) -> None:
    assert report("softened")["outcome"] == "hit"
    shutil.rmtree(store)
    found = report("softened")
    assert_right(found)
    assert_right(report("softened"))
    assert report("softened")["outcome"] == "hit"


def test_an_index_that_is_deleted_while_it_is_open_is_made_anew(open_store: Cache, store: Path) -> None:
    assert report("softened")["outcome"] == "hit"
    for path in (store / "v1").glob("index.sqlite*"):
        path.unlink()
    assert_right(report("softened"))
    assert_right(report("softened"))
    assert report("softened")["outcome"] == "hit"


def test_a_store_that_another_takes_the_place_of_is_read_as_it_is_now(
    open_store: Cache, store: Path, stores: dict[str, Path]
) -> None:
    assert report("softened")["outcome"] == "hit"
    shutil.rmtree(store)
    shutil.copytree(stores["logged"], store)
    assert_right(report("softened"))


# A store that cannot be written


@pytest.mark.parametrize("place", ["below a file", "a file", "proc"])
def test_a_directory_that_cannot_be_made_is_a_miss_every_time(tmp_path: Path, place: str) -> None:
    file = tmp_path / "file"
    file.write_text("here before")
    directory = {"below a file": file / "cache", "a file": file, "proc": Path("/proc/self/cache")}[place]
    if place == "proc" and not sys.platform.startswith("linux"):
        pytest.skip("this platform has no /proc")
    assert [outcome for outcome, _ in in_child(lambda: use(directory))] == ["miss", "miss"]
    assert file.read_text() == "here before"


def test_a_full_disk_keeps_nothing_and_gives_right_results(tmp_path: Path) -> None:
    def limited(size: int) -> list[tuple[str, str]]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return use(tmp_path / str(size))

    for size in (0, 4096, 20_000, 60_000):
        outcomes = in_child(lambda size=size: limited(size))
        assert [outcome for outcome, _ in outcomes] == ["miss", "miss"]


# Bytes that are what was written, and still wrong


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch, open_store: Cache) -> CacheKey:
    """The key of the function."""
    found: list[CacheKey] = []

    def remember(*arguments: Any) -> CacheKey:
        found.append(function_key(*arguments))
        return found[-1]

    with monkeypatch.context() as patch:
        patch.setattr("engine.compiling.key.function_key", remember)
        report("softened", call=False)
    return found[0]


@pytest.fixture
def sound(open_store: Cache, key: CacheKey) -> Program:
    """The stored program of the function."""
    found = open_store.lookup(key)
    assert isinstance(found, Hit)
    return unpack_program(found.payload)


def code(program: Program, change: Callable[[np.ndarray], Any]) -> bytes:
    words = np.frombuffer(program.code, "<i8").copy()
    changed = change(words)
    return pack_program(program._replace(code=(words if changed is None else changed).tobytes()))


def described(program: Program, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The program with another description."""
    content = pack_program(program)
    length = int.from_bytes(content[5:13], "little")
    description = json.loads(content[13 : 13 + length])
    changed = change(description)
    text = json.dumps(description if changed is None else changed).encode()
    return content[:5] + len(text).to_bytes(8, "little") + text + content[13 + length :]


def first_bind(words: np.ndarray) -> None:
    words[2] = 99  # BIND register item ...


GARBAGE: dict[str, Callable[[Program], bytes]] = {
    "nothing": lambda p: b"",
    "other bytes": lambda p: b"something else entirely",
    "a later format": lambda p: MAGIC + b"\x63" + pack_program(p)[5:],
    "half of it": lambda p: pack_program(p)[: len(pack_program(p)) // 2],
    "more than it": lambda p: pack_program(p) + b"\0",
    "a section beyond the end": lambda p: pack_program(p)[:5] + b"\xff" * 8 + pack_program(p)[13:],
    "a description that is no JSON": lambda p: MAGIC + b"\1" + (b"\1" + bytes(7) + b"{") + bytes(24),
    "a description nested too deep": lambda p: (
        described(p, lambda d: None)[:5] + (200_000).to_bytes(8, "little") + b"[" * 200_000 + bytes(24)
    ),
    "a description that is a list": lambda p: described(p, lambda d: [1]),
    "a description without kernels": lambda p: described(p, lambda d: d.pop("kernels") and d),
    "kernels of another form": lambda p: described(p, lambda d: d | {"kernels": [[1]]}),
    "kernels that are no numbers": lambda p: described(p, lambda d: d | {"kernels": [["a", "b", "c"]]}),
    "no kernels": lambda p: pack_program(p._replace(kernels=())),
    "no fast call": lambda p: pack_program(p._replace(kernels=p.kernels[1:])),
    "no machine": lambda p: pack_program(p._replace(kernels=p.kernels[2:])),
    "kernels that there are not": lambda p: pack_program(
        p._replace(kernels=tuple(KernelUse(k.register, "00" * 16, k.confirmation) for k in p.kernels))
    ),
    "a kernel in no register": lambda p: pack_program(
        p._replace(kernels=(*p.kernels[:2], *(k._replace(register=10**9) for k in p.kernels[2:])))
    ),
    "a kernel in a negative register": lambda p: pack_program(
        p._replace(kernels=(*p.kernels[:2], *(k._replace(register=-1) for k in p.kernels[2:])))
    ),
    "no code": lambda p: pack_program(p._replace(code=b"")),
    "code cut inside of a word": lambda p: pack_program(p._replace(code=p.code[:-3])),
    "code without an end": lambda p: code(p, lambda words: words[:-1]),
    "code of unknown instructions": lambda p: code(p, lambda words: words.fill(1000)),
    "code that writes beyond the registers": lambda p: code(p, lambda words: words.__setitem__(1, 10**6)),
    "code that writes before the registers": lambda p: code(p, lambda words: words.__setitem__(1, -5)),
    "code that binds an argument that there is not": lambda p: code(p, first_bind),
    "no registers": lambda p: pack_program(p._replace(registers=b"")),
    "no yields": lambda p: pack_program(p._replace(yields=())),
    "a yield without arrays": lambda p: pack_program(
        p._replace(yields=tuple(y._replace(arrays=()) for y in p.yields))
    ),
    "arrays of a dtype that there is not": lambda p: pack_program(
        p._replace(
            yields=tuple(
                y._replace(arrays=tuple(a._replace(dtype="x9") for a in y.arrays)) for y in p.yields
            ),
        )
    ),
    "arrays of objects": lambda p: pack_program(
        p._replace(
            yields=tuple(y._replace(arrays=tuple(a._replace(dtype="O") for a in y.arrays)) for y in p.yields),
        )
    ),
    "arrays of another dtype": lambda p: pack_program(
        p._replace(
            yields=tuple(
                y._replace(arrays=tuple(a._replace(dtype="int8") for a in y.arrays)) for y in p.yields
            ),
        )
    ),
    "arrays of another rank": lambda p: pack_program(
        p._replace(
            yields=tuple(
                y._replace(arrays=tuple(a._replace(dims=(5, 5)) for a in y.arrays)) for y in p.yields
            ),
        )
    ),
    "arrays whose lengths are in no register": lambda p: pack_program(
        p._replace(
            yields=tuple(
                y._replace(arrays=tuple(a._replace(dims=(10**6,)) for a in y.arrays)) for y in p.yields
            ),
        )
    ),
    "results that are never made": lambda p: pack_program(p._replace(outputs=(7, 8))),
    "fewer results": lambda p: pack_program(p._replace(outputs=p.outputs[:1])),
    "an update that nobody asked for": lambda p: pack_program(p._replace(updates=((0, 0),))),
    "fewer inputs": lambda p: pack_program(p._replace(inputs=())),
}


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_stored_program_that_is_garbage_is_a_miss_with_a_reason(
    open_store: Cache, store: Path, key: CacheKey, sound: Program, garbage: str
) -> None:
    assert open_store.store(key, Artifact(GARBAGE[garbage](sound)))
    open_store._store.close()
    assert in_child(lambda: use(store)) == [("miss", "unreadable"), ("hit", "")]


def kernel_keys(program: Program) -> list[CacheKey]:
    return [
        CacheKey("kernel", (), bytes.fromhex(k.digest), bytes.fromhex(k.confirmation))
        for k in program.kernels
    ]


@pytest.mark.parametrize(
    "which", [0, 1, 2, -1], ids=["the machine", "the fast call", "the first kernel", "the last kernel"]
)
def test_a_kernel_that_is_missing_is_compiled_again(
    open_store: Cache, store: Path, sound: Program, which: int
) -> None:
    assert open_store._store.delete([kernel_keys(sound)[which].digest]) == 1
    open_store._store.close()
    assert in_child(lambda: use(store)) == [("miss", "unreadable"), ("hit", "")]


def test_of_the_kernels_of_a_function_one_whose_row_is_damaged_is_compiled_again(
    open_store: Cache, store: Path, sound: Program
) -> None:
    """The others are found by the same SELECT, and used."""
    with open_store._store.database.writing() as connection:
        connection.execute(
            "UPDATE record SET content = zeroblob(length(content)) WHERE entry_id = "
            "(SELECT id FROM entry WHERE digest = ?)",
            (kernel_keys(sound)[-1].digest,),
        )
    open_store._store.close()
    runs = [in_fresh_process("softened", CACHEGRAPH_DIR=str(store)) for _ in range(2)]
    others = len(sound.kernels) - 1
    assert [(run["outcome"], run["reason"], run["compilations"]) for run in runs] == [
        ("miss", "unreadable", 1),
        ("hit", "", 0),
    ]
    assert [run["found"]["kernel"] for run in runs] == [[others, 1], [others + 1, 0]]
    for run in runs:
        assert_right(run)


@pytest.mark.parametrize(
    "content", ["nothing", "garbage", "another kernel", "half of it", "a bit of it flipped"]
)
def test_a_kernel_that_is_garbage_is_compiled_again(
    open_store: Cache, store: Path, sound: Program, content: str
) -> None:
    other, _, one = kernel_keys(sound)[:3]  # the machine is stored as kernels are
    found, another = open_store.lookup(one), open_store.lookup(other)
    assert isinstance(found, Hit)
    assert isinstance(another, Hit)
    flipped = bytearray(found.payload)
    flipped[len(flipped) * 2 // 3] ^= 4
    contents = {
        "nothing": b"",
        "garbage": b"\x7fELF" + bytes(1000),
        "another kernel": another.payload,
        "half of it": found.payload[: len(found.payload) // 2],
        "a bit of it flipped": bytes(flipped),
    }
    assert open_store.store(one, Artifact(contents[content]))
    open_store._store.close()
    assert in_child(lambda: use(store)) == [("miss", "unreadable"), ("hit", "")]


# The optimized graph


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.makedirs, (str(Path(os.environ["CACHEGRAPH_DIR"]) / "hostile"),))


@pytest.fixture
def graphs_of(open_store: Cache, key: CacheKey) -> Iterator[Callable[[bytes], Any]]:
    """Put a blob in the place of the optimized graph; the function made after that."""
    found = open_store.lookup(key)
    assert isinstance(found, Hit)

    def make(blob: bytes) -> Any:
        assert open_store.store(key, Artifact(found.payload, {OPTIMIZED: blob}))
        inputs, outputs, _, _ = softened()
        f = engine.function(inputs, outputs)
        assert f.cache_info.outcome == "hit"
        return f

    return make


@pytest.mark.parametrize(
    "blob",
    [
        lambda: b"",
        lambda: b"garbage",
        lambda: pickling.dumps("a string"),
        lambda: pickling.dumps(None),
        lambda: pickling.dumps([1, 2], [1]),
        lambda: pickle.dumps(Hostile(), protocol=5),
        lambda: b"cposix\nsystem\n(S'false'\ntR.",
        lambda: b"cengine.compiler\nperf_counter\n(tR.",
    ],
)
def test_an_optimized_graph_that_cannot_be_read_is_made_anew_and_nothing_of_it_runs(
    graphs_of: Any, store: Path, blob: Callable[[], bytes]
) -> None:
    f = graphs_of(blob())
    assert "Composite" in engine.dprint(f, file="str")
    assert not (store / "hostile").exists()


def test_an_optimized_graph_that_is_damaged_on_the_disk_is_made_anew(open_store: Cache, store: Path) -> None:
    for path in files(store / "v1" / "blobs"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    inputs, outputs, _, _ = softened()
    f = engine.function(inputs, outputs)
    assert f.cache_info.outcome == "hit"
    assert "Composite" in engine.dprint(f, file="str")
