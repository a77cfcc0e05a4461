"""Misses are kept with their reasons, and explained by the nearest stored key when somebody asks."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachegraph import explanation
from cachegraph.cache import Artifact, Cache, Miss
from cachegraph.cli.app import app
from cachegraph.errors import CacheMissError
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey
from cachegraph.settings import Mode, OnMiss, Settings
from cachegraph.store.local.database import Database
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.planning import Criteria
from cachegraph.store.maintenance.pruning import carry_out, plan
from tests.cachegraph.store.older_release import OlderRelease


def key_of(level: str = "function", **parts: object) -> CacheKey:
    values = {"graph": "g", "options": {"fast": True}, "target": "x86", **parts}
    return CacheKey.build(level, {"scheme": b"test", **{n: encode(v) for n, v in values.items()}})


@pytest.fixture
def make(cache_directory: Path) -> Callable[..., Cache]:
    def of(mode: Mode = "readwrite", on_miss: OnMiss = "compile") -> Cache:
        return Cache(Settings(cache_directory, mode, on_miss))

    return of


Make = Callable[..., Cache]


def miss_of(cache: Cache, key: CacheKey) -> Miss:
    found = cache.lookup(key)
    assert isinstance(found, Miss)
    return found


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["why-miss", *arguments], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_another_subject_was_never_seen(make: Make) -> None:
    make().store(key_of(), Artifact(b"a"))
    assert miss_of(make(), key_of(graph="h")).reason == "never-seen"
    assert miss_of(make(), key_of("kernel")).reason == "never-seen"


def test_the_same_subject_with_other_parts_names_the_parts(make: Make) -> None:
    make().store(key_of(), Artifact(b"a"))
    miss = miss_of(make(), key_of(options={"fast": False}))
    assert miss == Miss("key-part-changed: options", f"the entry {key_of().hex} differs in options")
    both = miss_of(make(), key_of(options=1, target="arm"))
    assert both.reason == "key-part-changed: options, target"


def test_the_same_key_for_another_machine_is_a_foreign_target(make: Make) -> None:
    make().store(key_of(), Artifact(b"a"))
    assert miss_of(make(), key_of(target="arm")).reason == "foreign-target"


def test_the_entry_with_the_most_equal_parts_is_compared(make: Make) -> None:
    cache = make()
    for options, target in [(1, "x86"), (2, "arm"), (3, "arm")]:
        cache.store(key_of(options=options, target=target), Artifact(b"a"))
    assert miss_of(cache, key_of(options=1, target="sparc")).reason == "foreign-target"
    assert miss_of(cache, key_of(options=9, target="x86")).reason == "key-part-changed: options"


def test_what_was_evicted_says_why_and_when(make: Make, cache_directory: Path) -> None:
    make().store(key_of(), Artifact(b"a"))
    store = LocalStore(cache_directory)
    carry_out(store, plan(store, 2e10, Criteria(unused_for=60.0)))
    miss = miss_of(make(), key_of())
    assert (miss.reason, miss.detail[:30]) == ("evicted", "pruned: not used for 1m, at 20")
    make().store(key_of(), Artifact(b"b"))
    carry_out(store, plan(store, 0.0, Criteria(max_size=0)))
    assert miss_of(make(), key_of()).detail.startswith("pruned: to keep 0 B, at ")


def test_only_the_latest_evictions_are_remembered(
    cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachegraph.store.local.eviction.EVICTED_KEPT", 2)
    store = LocalStore(cache_directory)
    for graph in "abcd":
        store.put(key_of(graph=graph), Artifact(b"a"))
        store.delete([key_of(graph=graph).digest])
    reasons = [store.get(key_of(graph=graph)).reason for graph in "abcd"]  # type: ignore[union-attr]
    assert reasons == ["never-seen", "never-seen", "evicted", "evicted"]


def test_an_explanation_names_the_nearest_key_and_what_differs(make: Make) -> None:
    cache = make()
    cache.store(key_of(), Artifact(b"a"))
    cache.store(key_of(options=7, target="arm", graph="z"), Artifact(b"b"))
    found = cache.explain(key_of(options={"fast": False}))
    assert (found.reason, found.nearest) == ("key-part-changed: options", key_of().hex)
    assert (found.equal, found.parts) == (3, 4)
    assert [tuple(one) for one in found.differences] == [("options", "fast: False, stored True")]
    assert str(found).splitlines()[-1] == "options: fast: False, stored True"


def test_of_equally_near_keys_the_most_alike_subject_is_chosen(make: Make) -> None:
    cache = make()
    for graph in ("something else", "a long graph with 1 in it", "zz"):
        cache.store(key_of(graph=graph), Artifact(b"a"))
    found = cache.explain(key_of(graph="a long graph with 2 in it"))
    assert found.nearest == key_of(graph="a long graph with 1 in it").hex


def test_an_explanation_takes_one_statement_and_decodes_few_of_many_keys(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = make()
    for number in range(100):
        cache.store(key_of(graph=f"graph {number} " * 50), Artifact(b"a"))
    statements = []
    select = Database.select_all
    monkeypatch.setattr(
        Database, "select_all", lambda self, *told: statements.append(told[0]) or select(self, *told)
    )
    parsed = []
    parse = CacheKey.parse
    monkeypatch.setattr(CacheKey, "parse", lambda encoding: parsed.append(1) or parse(encoding))
    found = cache.explain(key_of(graph="graph 57 " * 49))
    assert found.nearest == key_of(graph="graph 57 " * 50).hex
    assert len(statements) == 1
    assert len(parsed) <= explanation._CANDIDATES < 100


def test_an_older_entry_about_the_same_subject_is_near_however_many_came_later(make: Make) -> None:
    cache = make()
    cache.store(key_of(graph="the subject", options=1), Artifact(b"a"))
    for number in range(1010):
        cache.store(key_of(graph=f"another {number}", options=2), Artifact(b"a"))
    found = cache.explain(key_of(graph="the subject", options=3, target="arm"))
    assert found.nearest == key_of(graph="the subject", options=1).hex


def test_of_keys_that_share_no_part_the_one_most_alike_is_nearest(cache_directory: Path) -> None:
    cache = Cache(cache_directory, namespace="toyc")
    for source in ("x * (y + 2)", "a / b", "print(z)"):
        cache.get_or_build({"source": source}, lambda: b"code", bytes)
    found = cache.explain(cache.key({"source": "x * (y + 3)"}))
    assert found.nearest == cache.key({"source": "x * (y + 2)"}).hex
    assert "0 of 1 parts equal\nsource: 'x * (y + 3)', stored 'x * (y + 2)'" in str(found)


def test_nothing_stored_is_explained_too(make: Make) -> None:
    found = make().explain(key_of())
    assert (found.reason, found.nearest, found.differences) == ("never-seen", None, ())
    assert "no other key" in str(found)


def test_an_installed_reader_says_what_differs_and_one_that_fails_is_done_without(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(wanted: bytes, stored: bytes) -> str:
        return f"{len(wanted)} {len(stored)}"

    cache = make()
    cache.store(key_of(), Artifact(b"a"))
    monkeypatch.setattr(explanation, "_readers_of", lambda level, part: (read,) if part == "graph" else ())
    assert cache.explain(key_of(graph="longer")).differences[0].what == "9 4"

    def fail(wanted: bytes, stored: bytes) -> str:
        raise IndexError("not what it reads")

    monkeypatch.setattr(explanation, "_readers_of", lambda level, part: (fail,) if part == "graph" else ())
    assert cache.explain(key_of(graph="h")).differences[0].what == "'h', stored 'g'"


def test_misses_are_kept_and_explained_on_the_command_line(make: Make) -> None:
    cache = make()
    for value in (1, 2):
        cache.get_or_build(key_of(options=value), lambda: Artifact(b"a"), bytes)
    cache.flush()
    lines = run(key_of(options=2).hex[:10]).splitlines()
    assert lines[0].startswith(f"function {key_of(options=2).hex}: key-part-changed: options")
    assert lines[1:] == [f"nearest: {key_of(options=1).hex}, 3 of 4 parts equal", "options: 2, stored 1"]
    table = run()
    assert table.index(key_of(options=2).hex[:12]) < table.index(key_of(options=1).hex[:12])
    assert "options: 2, stored 1" in table
    assert '"missed"' in run("--json")


def test_functions_come_before_what_they_are_made_of(make: Make) -> None:
    cache = make()
    cache.store(key_of(), Artifact(b"a"))
    for level in ("function", "op", "kernel", "numba"):
        for i in range(30 if level != "function" else 2):
            cache.lookup(key_of(level, graph=str(i)))
    cache.flush()
    rows = run().splitlines()[2:]
    assert [row.split()[1] for row in rows[:3]] == ["function", "function", "numba"]
    assert len(rows) == 20


def test_a_key_that_was_never_stored_is_explained_by_its_kept_encoding(make: Make) -> None:
    make().store(key_of(), Artifact(b"a"))
    job = make(on_miss="error")
    with pytest.raises(CacheMissError):
        job.get_or_build(key_of(options=2), lambda: Artifact(b"b"), bytes)
    job.flush()
    assert "options: 2, stored {'fast': True}" in run(key_of(options=2).hex)


def test_unknown_and_impossible_keys_end_the_command() -> None:
    assert CliRunner().invoke(app, ["why-miss", "abcdef"]).exit_code == 1
    assert CliRunner().invoke(app, ["why-miss", "xyz"]).exit_code == 2
    assert run().startswith("no misses in ")


@pytest.mark.parametrize("damage", ["x'00'", "x''", "zeroblob(100)"])
def test_damaged_encodings_explain_nothing_and_raise_nothing(
    make: Make, cache_directory: Path, damage: str
) -> None:
    make().store(key_of(), Artifact(b"a"))
    connection = sqlite3.connect(LocalStore(cache_directory).layout.index)
    connection.execute(f"UPDATE encoding SET content = {damage}")
    connection.commit()
    connection.close()
    found = make().explain(key_of(options=2))
    assert (found.reason, found.nearest) == ("key-part-changed: options", None)


def test_an_index_of_the_first_release_is_used_and_brought_up_when_written(cache_directory: Path) -> None:
    first = OlderRelease(cache_directory, schema=1)
    first.put(key_of(), b"a", {}, {})
    first.close()
    readonly = Cache(Settings(cache_directory, "readonly", "compile"))
    assert miss_of(readonly, key_of()).reason == "foreign-format"
    assert miss_of(readonly, key_of(options=2)).reason == "never-seen"
    written = Cache(Settings(cache_directory, "readwrite", "compile"))
    assert miss_of(written, key_of(options=2)).reason == "never-seen"
    written.flush()
    misses = LocalStore(cache_directory).catalogue.misses(9)
    assert [kept.digest for kept in misses] == [key_of(options=2).digest]


def test_the_reason_of_a_miss_imports_nothing() -> None:
    import subprocess

    program = (
        "import sys\nfrom cachegraph.cache import default_cache\nfrom cachegraph.key import CacheKey\n"
        "found = default_cache().lookup(CacheKey.build('function', {'graph': b'none'}))\n"
        "print(found.reason, 'sqlalchemy' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["never-seen", "False"]


def test_what_is_kept_of_misses_is_bounded_in_bytes_and_the_latest_are_explained(
    make: Make, monkeypatch: pytest.MonkeyPatch, cache_directory: Path
) -> None:
    monkeypatch.setattr("cachegraph.store.local.index.MISSED_BYTES", 50_000)
    make().store(key_of(), Artifact(b"a"))
    for i in range(12):
        cache = make()
        cache.lookup(key_of(graph=os.urandom(10_000)))
        cache.flush()
    kept = LocalStore(cache_directory).catalogue.misses(99)
    assert len(kept) == 12
    assert [miss.encoding is not None for miss in kept] == [True] * 4 + [False] * 8
