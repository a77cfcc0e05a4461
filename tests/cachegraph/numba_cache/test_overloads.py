"""What numba compiles for its dispatchers is kept in the store: found by another process, and right whatever happens."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import types
from numba.core.event import install_recorder

import cachegraph
from cachegraph.cache import Artifact, Cache, Hit, default_cache
from cachegraph.errors import CacheMissError, Unfingerprintable
from cachegraph.fingerprint import encode
from cachegraph.numba_cache import keep_overloads
from cachegraph.numba_cache.compiled import MAGIC, NotStorable, pack_overload
from cachegraph.numba_cache.fresh_compilation import fresh_compilation
from tests.cachegraph.numba_cache.numba_process import in_fresh_process, kept

KINDS = ("added", 1, "factorial", 5, "summed", 6, "raising", 4, "raising", -4)
RESULTS = [12.0, 120.0, 12.0, [2.0, [4.0, 0.0]], "ValueError('negative', -4.0)"]


def rewritten(directory: Path, change: Any) -> int:
    """Change what the index holds of the level "numba"; how many entries were."""
    with closing(sqlite3.connect(directory / "v1" / "index.sqlite")) as database, database:
        rows = database.execute(
            "SELECT record.rowid, content FROM record JOIN entry ON entry.id = entry_id WHERE level = 'numba'"
        ).fetchall()
        for row, content in rows:
            database.execute("UPDATE record SET content = ? WHERE rowid = ?", (change(content), row))
    return len(rows)


def tripled(number: int = 3) -> Any:
    """A dispatcher that is found under one description, whoever makes it."""

    @numba.njit
    def tripled(x):
        return x * number

    return kept(tripled, "tripled")


def key_of(dispatcher: Any, *arguments: Any) -> Any:
    return dispatcher._cache._entries.key(arguments, dispatcher.targetctx.codegen())


def reasons() -> dict[str, int]:
    return dict(cachegraph.counters().misses)


def new(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: n - before.get(name, 0) for name, n in after.items() if n != before.get(name, 0)}


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_gives_the_same() -> None:
    *first, _ = in_fresh_process(*KINDS)
    *second, _ = in_fresh_process(*KINDS)
    assert [row["result"] for row in first] == [row["result"] for row in second] == RESULTS
    assert first[0]["compiled"] == ["inner", "outer"]
    assert [row["compiled"] for row in second] == [[]] * 5
    assert [row["hits"] for row in second] == [1] * 5


@pytest.mark.slow
def test_functions_of_one_name_from_two_processes_are_told_apart_in_a_third() -> None:
    """numba #10486: by numba's own files, the third process calls one body for both."""
    [first, _] = in_fresh_process("added", 1)
    [second, _] = in_fresh_process("added", 2)
    [one, two, linked, _] = in_fresh_process("added", 1, "added", 2, "both", 1)
    assert (first["result"], second["result"]) == (12.0, 21.0)
    assert (one["result"], two["result"], linked["result"]) == (12.0, 21.0, 12021.0)
    assert (one["compiled"], two["compiled"], linked["compiled"]) == ([], [], ["outer"])
    [again, _] = in_fresh_process("both", 1)
    assert again == {"result": 12021.0, "hits": 1, "compiled": []}


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
        lambda content: b"",
        lambda content: os.urandom(len(content)),
    ],
)
def test_what_was_damaged_is_a_miss_that_numba_never_sees(cache_directory: Path, damage: Any) -> None:
    assert tripled()(2) == 6
    default_cache().flush()
    assert rewritten(cache_directory, damage) == 1
    before, again = reasons(), tripled()
    assert (again(2), dict(again.stats.cache_hits)) == (6, {})
    assert sum(new(before, reasons()).values()) == 1
    last = tripled()
    assert (last(2), sum(last.stats.cache_hits.values())) == (6, 1)


def test_a_foreign_or_hostile_entry_is_a_miss_and_nothing_of_it_runs(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    description = pickle.dumps(Hostile(), 5)
    lengths = b"".join(n.to_bytes(8, "little") for n in (len(description), 0, 0))
    payloads = {
        MAGIC + bytes([1]) + lengths + description: "untrusted",
        MAGIC + bytes([9]) + lengths + description: "unreadable",
        b"something else": "unreadable",
        b"": "unreadable",
    }
    for payload, reason in payloads.items():
        dispatcher = tripled()
        assert default_cache().store(key_of(dispatcher, types.int64), Artifact(payload))
        before = reasons()
        assert dispatcher(2) == 6
        assert new(before, reasons()) == {reason: 1}
    assert not (tmp_path / "ran").exists()


def test_an_entry_for_other_types_is_a_miss() -> None:
    dispatcher = tripled()
    assert dispatcher(2) == 6
    found = default_cache().lookup(key_of(dispatcher, types.int64))
    assert isinstance(found, Hit)
    other = tripled()
    default_cache().store(key_of(other, types.float64), Artifact(found.payload))
    assert (other(2.5), dict(other.stats.cache_hits)) == (7.5, {})


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_nothing_wrong(cache_directory: Path) -> None:
    program = (
        "from tests.cachegraph.numba_cache.numba_process import *\n"
        "for n in range(1000): kept(added(n)[0], f'added {n}')(np.ones(3))\n"
    )
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(root)}
    ) as writer:
        deadline = time.monotonic() + 60
        while stored(cache_directory) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        writer.send_signal(signal.SIGKILL)
    count = stored(cache_directory)
    assert count >= 3
    commands = [word for n in range(count + 1) for word in ("added", n)]
    *rows, _ = in_fresh_process(*commands)
    assert [row["result"] for row in rows] == [3.0 + 9 * n for n in range(count + 1)]
    assert [row["hits"] for row in rows[:count]] == [1] * count


def stored(directory: Path) -> int:
    index = directory / "v1" / "index.sqlite"
    if not index.exists():
        return 0
    with closing(sqlite3.connect(index)) as database:
        try:
            return int(database.execute("SELECT count(*) FROM entry WHERE level = 'numba'").fetchone()[0])
        except sqlite3.OperationalError:  # it is being made
            return 0


@pytest.mark.slow
def test_code_that_needs_a_symbol_nobody_has_is_a_miss() -> None:
    [first, _] = in_fresh_process("needing", 1)
    [second, _] = in_fresh_process("needing", 1)
    assert (first["result"], second["result"], second["hits"]) == (5.0, 5.0, 1)
    [third, counted] = in_fresh_process("needing", 0)
    assert (third["result"], third["hits"]) == (5.0, 0)
    assert counted["misses"] == {"unreadable": 1}


@pytest.mark.slow
def test_another_overload_of_a_called_function_is_a_miss() -> None:
    """numba finds overloads by what is called: they are a part of what that is described by."""
    results = [in_fresh_process("extended", which)[0] for which in (1, 2, 1)]
    assert [row["result"] for row in results] == [11.0, 12.0, 11.0]
    assert [row["hits"] for row in results] == [0, 0, 1]


@pytest.mark.slow
def test_other_settings_of_numba_are_a_miss() -> None:
    settings: list[dict[str, str]] = [{}, {"NUMBA_OPT": "1"}, {"NUMBA_CPU_NAME": "x86-64"}]
    hits = [in_fresh_process("factorial", 5, **setting)[0]["hits"] for setting in settings]
    assert hits == [0, 0, 0]


def test_other_options_and_other_types_are_other_entries() -> None:
    def plain(x):
        return x + 1

    options: list[dict[str, Any]] = [{}, {"fastmath": True}, {"fastmath": {"nnan"}}, {"error_model": "numpy"}]
    keys = set()
    for option in options:
        dispatcher = numba.njit(**option)(plain)
        keep_overloads(dispatcher, encode("plain"))
        keys |= {
            key_of(dispatcher, of).digest
            for of in (types.int64, types.float64, types.Array(types.int64, 1, "C"))
        }
    assert len(keys) == 12


def bypasses() -> dict[str, int]:
    return dict(cachegraph.counters().bypasses)


def test_what_means_nothing_in_another_process_is_compiled_and_not_kept() -> None:
    large, labs = np.ones(200_000), ctypes.CDLL(None).labs
    labs.argtypes, labs.restype = [ctypes.c_long], ctypes.c_long

    @numba.njit
    def reads_large_data(i):
        return large[i]

    @numba.njit
    def calls_an_address(x):
        return labs(x)

    @numba.njit
    def generates(n):
        for i in range(n):  # noqa: UP028 numba does not compile it
            yield i

    @numba.njit
    def runs_python(x):
        with numba.objmode(y="int64"):
            y = int(str(x))
        return y

    @numba.jit(forceobj=True)
    def is_python(x):
        return str(x)

    for dispatcher, argument, due, kind in (
        (reads_large_data, 3, 1.0, "dynamic globals"),
        (calls_an_address, -3, 3, "dynamic globals"),
        (runs_python, 4, 4, "object mode"),
        (is_python, 4, "4", "object mode"),
    ):
        kept(dispatcher, dispatcher.py_func.__name__)
        before = bypasses()
        assert dispatcher(argument) == due
        assert new(before, bypasses()) == {kind: 1}
    kept(generates, "generates")
    before = bypasses()
    assert list(generates(3)) == [0, 1, 2]
    assert new(before, bypasses()) == {"generator": 1}


def test_types_that_cannot_be_described_are_a_bypass() -> None:
    class Pair:
        def __init__(self, a):
            self.a = a

    pair = numba.experimental.jitclass([("a", types.int64)])(Pair)

    @numba.njit
    def first(value):
        return value.a

    kept(first, "first")
    before = bypasses()
    assert first(pair(3)) == 3
    assert new(before, bypasses()) == {"unfingerprintable": 1}


def test_where_nothing_may_be_compiled_a_miss_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    with pytest.raises(CacheMissError) as raised:
        tripled()(2)
    assert raised.value.level == "numba"


@pytest.mark.parametrize("mode", ["off", "readonly"])
def test_nothing_is_kept_where_nothing_is_to_be(
    mode: str, monkeypatch: pytest.MonkeyPatch, cache_directory: Path
) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", mode)
    assert tripled()(2) == 6
    assert stored(cache_directory) == 0


def test_a_cache_that_fails_does_not_break_a_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("cachegraph.numba_cache.entries.pack_overload", fail)
    assert tripled()(2) == 6


def test_each_type_has_an_encoding_of_its_own() -> None:
    arrays = [types.Array(types.float64, n, layout) for n in (1, 2) for layout in "CFA"]
    constant = types.Array(types.float64, 1, "C", readonly=True)
    literals = [
        types.literal(1),
        types.literal(True),
        types.literal("1"),
        types.Omitted(1),
        types.Omitted(1.0),
    ]
    compound = [
        types.UniTuple(types.int64, 2),
        types.Tuple([types.int64, types.float64]),
        types.Optional(types.int64),
    ]
    plain = [types.int64, types.int32, types.float64, types.boolean, types.none, types.unicode_type]
    pointers = [types.voidptr, types.CPointer(types.float64), types.CPointer(types.int64)]
    known = [*arrays, constant, *literals, *compound, *plain, *pointers, types.ListType(types.int64)]
    assert len({encode(of) for of in known}) == len(known)
    assert encode(types.Tuple([types.int64, types.int64])) == encode(types.UniTuple(types.int64, 2))
    for unknown in (types.Record([], 8, False), types.pyobject, types.CPointer(types.int64, 1)):
        with pytest.raises(Unfingerprintable):
            encode(unknown)


def test_a_dispatcher_is_its_function_its_options_its_locals_and_its_declared_signatures() -> None:
    def plain(x):
        y = x + 1
        return y

    dispatchers = [
        numba.njit(plain),
        numba.njit(fastmath=True)(plain),
        numba.njit(locals={"y": types.float64})(plain),
        numba.njit("float64(float64)")(plain),
        numba.njit(["float64(float64)", "int64(int64)"])(plain),
        numba.njit(lambda x: x),
    ]
    assert len({encode(dispatcher) for dispatcher in dispatchers}) == len(dispatchers)
    used = numba.njit(plain)
    used(1)
    assert encode(used) == encode(numba.njit(plain))


def test_an_entry_whose_bitcode_is_gone_is_compiled_and_kept_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tripled()(2) == 6
    with monkeypatch.context() as patch:
        patch.setattr(Cache, "read_blob", lambda self, digest: None)
        again = tripled()
        assert (again(2), dict(again.stats.cache_hits)) == (6, {})
    last = tripled()
    assert (last(2), sum(last.stats.cache_hits.values())) == (6, 1)


def in_turn(dispatcher: Any, *arguments: Any) -> Any:
    dispatcher._cache.get_or_compile(dispatcher, arguments)
    return dispatcher


def test_in_turn_an_overload_is_found_or_compiled_and_kept() -> None:
    first, second = in_turn(tripled(), types.int64), in_turn(tripled(), types.int64)
    assert (first(2), second(2)) == (6, 6)
    assert [sum(dispatcher.stats.cache_hits.values()) for dispatcher in (first, second)] == [0, 1]


def test_in_turn_what_cannot_be_kept_is_found_out_once(cache_directory: Path) -> None:
    large = np.ones(200_000)

    def reader() -> Any:
        return kept(numba.njit(lambda i: large[i]), "reads large data")

    before = bypasses()
    assert [in_turn(reader(), types.int64)(n) for n in (1, 2)] == [1.0, 1.0]
    assert new(before, bypasses()) == {"dynamic globals": 1}
    assert stored(cache_directory) == 1


def test_in_turn_a_cache_that_fails_does_not_break_a_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    with monkeypatch.context() as patch:
        patch.setattr("cachegraph.numba_cache.entries.pack_overload", fail)
        assert in_turn(tripled(), types.int64)(2) == 6
    assert in_turn(tripled(), types.int64)(2) == 6
    with monkeypatch.context() as patch:
        patch.setattr(Cache, "read_blob", lambda self, digest: None)
        assert in_turn(tripled(), types.int64)(2) == 6
    with pytest.raises(numba.core.errors.TypingError):
        in_turn(kept(numba.njit(lambda x: open(x)), "no code"), types.int64)  # noqa: SIM115
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    with pytest.raises(CacheMissError):
        in_turn(tripled(), types.float64)


def test_what_was_compiled_here_of_the_same_values_is_not_compiled_again() -> None:
    space: dict[str, Any] = {"numba": numba, "K": 2.0, "__name__": "hidden"}
    exec("@numba.njit\ndef g(x): return x * K\ndef f(x): return g(x)", space)
    g = space["g"]

    def compilations_of_g() -> int:
        with install_recorder("numba:compile") as recorder, fresh_compilation():
            dispatcher = numba.njit(space["f"])
            dispatcher.compile("f8(f8)")
        assert dispatcher(1.0) == space["K"]
        return sum(event.data["dispatcher"] is g and event.is_start for _, event in recorder.buffer)

    assert compilations_of_g() == 1
    assert g(3) == 6
    assert compilations_of_g() == 0
    assert len(g.overloads) == 2
    space["K"] = 5.0
    assert [compilations_of_g(), compilations_of_g()] == [1, 0]
    assert g(1.0) == 2.0


def test_functions_that_call_each_other_are_not_kept() -> None:
    space: dict[str, Any] = {"numba": numba, "__name__": "hidden"}
    exec(
        "@numba.njit\ndef g(x): return x if x < 1 else h(x - 1)\n@numba.njit\ndef h(x): return g(x) + 1",
        space,
    )
    space["g"].compile("f8(f8)")
    with pytest.raises(NotStorable) as caught:
        pack_overload(next(iter(space["g"].overloads.values())), "0" * 32)
    assert caught.value.kind == "recursion"
