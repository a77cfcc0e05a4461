"""Pruning: which things go and which stay, also while jobs run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.errors import StoreError
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey
from cachegraph.store.activity import Activity
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.local.eviction import GRACE_SECONDS
from cachegraph.store.local.salvage import quarantine_index
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.directory import bytes_on_disk, clear
from cachegraph.store.maintenance.planning import QUARANTINE_SECONDS, UNREFERENCED_SECONDS, Criteria
from cachegraph.store.maintenance.pruning import SOURCE_RECORD_SECONDS, carry_out, plan
from cachegraph.store.quarantine import quarantine_content
from cachegraph.toolchain import toolchain, version_or_absent

Key = Callable[..., CacheKey]

DAY = 86400.0
EMPTY_INDEX = 130_000
"""Bytes of an index without entries: mostly one page for each table and index."""


def later(seconds: float) -> float:
    return time.time() + seconds


def use(store: LocalStore, key: CacheKey) -> None:
    activity = Activity()
    activity.use(key.digest, 0.0)
    assert store.add_counts(activity.take())


def held(store: LocalStore, *keys: CacheKey) -> list[bool]:
    return [isinstance(store.get(key), Hit) for key in keys]


def test_nothing_is_removed_without_a_reason(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a" * 100_000, {"graph": b"g"}))
    chosen = plan(store, later(10 * DAY))
    assert (chosen.entries, chosen.blobs, chosen.leftovers) == ([], [], [])
    assert chosen.bytes_before == chosen.bytes_after > 100_000


def test_an_absent_directory_is_planned_and_not_made(store: LocalStore) -> None:
    chosen = plan(store, time.time(), Criteria(max_size=0, older_than=0.0))
    assert carry_out(store, chosen) == 0
    assert not store.layout.directory.exists()


def test_what_was_not_used_for_long_goes(store: LocalStore, key: Key) -> None:
    store.put(key("old"), Artifact(b"old"))
    time.sleep(0.2)
    store.put(key("new"), Artifact(b"new"))
    chosen = plan(store, time.time(), Criteria(unused_for=0.1))
    assert [entry.digest for entry in chosen.entries] == [key("old").digest]
    assert held(store, key("old"), key("new")) == [True, True]  # a plan alone removes nothing
    carry_out(store, chosen)
    assert held(store, key("old"), key("new")) == [False, True]


def test_a_use_keeps_an_old_entry(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    time.sleep(0.2)
    use(store, key("a"))
    assert plan(store, time.time(), Criteria(unused_for=0.1)).entries == []


def test_of_equal_worth_the_least_recently_used_go_until_the_size_is_kept(
    store: LocalStore, key: Key
) -> None:
    for name in "abcdef":
        store.put(key(name), Artifact(name.encode() * 100_000))
    use(store, key("a"))
    limit = plan(store, time.time()).bytes_before - 150_000
    chosen = plan(store, time.time(), Criteria(max_size=limit))
    assert [entry.digest for entry in chosen.entries] == [key("b").digest, key("c").digest]
    assert chosen.bytes_after <= limit
    carry_out(store, chosen)
    assert held(store, *map(key, "abcdef")) == [True, False, False, True, True, True]
    assert plan(store, time.time()).bytes_before <= limit
    assert len(list(store.blobs.files())) == 4


def test_inline_payloads_give_their_room_back(store: LocalStore, key: Key) -> None:
    for i in range(50):
        store.put(key(i), Artifact(os.urandom(20_000)))
    before = bytes_on_disk(store.layout)
    carry_out(store, plan(store, time.time(), Criteria(max_size=300_000)))
    assert plan(store, time.time()).bytes_before <= 300_000
    assert bytes_on_disk(store.layout) < 300_000 + EMPTY_INDEX + 50_000 < before
    assert 5 < len(store.scan()) < 50


def test_a_blob_that_another_entry_refers_to_stays(store: LocalStore, key: Key) -> None:
    shared = b"shared" * 50_000
    store.put(key("a"), Artifact(b"a", {"graph": shared}))
    time.sleep(0.2)
    store.put(key("b"), Artifact(b"b", {"graph": shared}))
    chosen = plan(store, time.time(), Criteria(unused_for=0.1))
    assert len(chosen.entries) == 1
    assert chosen.blobs == []
    carry_out(store, chosen)
    found = store.get(key("b"))
    assert isinstance(found, Hit)
    assert store.read_blob(found.blobs["graph"]) == shared


def test_an_unreferenced_blob_goes_after_the_grace_period(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a" * 100_000))
    store.put(key("a"), Artifact(b"other"))
    assert plan(store, later(GRACE_SECONDS - 60)).blobs == []
    chosen = plan(store, later(GRACE_SECONDS + 60))
    assert [blob.size for blob in chosen.blobs] == [100_000]
    assert carry_out(store, chosen) == 100_000
    assert list(store.blobs.files()) == []
    assert held(store, key("a")) == [True]


def test_a_blob_that_came_into_use_after_the_plan_stays(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a" * 100_000))
    store.delete([key("a").digest])
    (file,) = store.blobs.files()
    os.utime(file.path, (1, 1))
    chosen = plan(store, time.time())
    assert len(chosen.blobs) == 1
    store.put(key("b"), Artifact(b"a" * 100_000))
    os.utime(file.path, (1, 1))
    assert carry_out(store, chosen) == 0
    assert held(store, key("b")) == [True]


def test_a_blob_that_a_writer_renewed_after_the_plan_stays(store: LocalStore, key: Key) -> None:
    """The writer has not published its entry yet."""
    store.put(key("a"), Artifact(b"a" * 100_000))
    store.delete([key("a").digest])
    (file,) = store.blobs.files()
    os.utime(file.path, (1, 1))
    chosen = plan(store, time.time())
    assert len(chosen.blobs) == 1
    store.blobs.write(b"a" * 100_000)
    assert carry_out(store, chosen) == 0
    assert store.read_blob(file.digest) == b"a" * 100_000


def test_a_put_whose_blobs_are_pruned_under_it_writes_them_again(
    store: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = store.blobs.write
    calls = 0

    def write_and_lose(content: bytes) -> str:
        nonlocal calls
        calls += 1
        digest = write(content)
        if calls == 1:
            store.layout.blob(digest).unlink()
        return digest

    monkeypatch.setattr(store.blobs, "write", write_and_lose)
    store.put(key("a"), Artifact(b"a" * 100_000))
    assert calls == 2
    assert held(store, key("a")) == [True]


def test_what_killed_processes_left_goes_after_the_grace_period(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a" * 100_000))
    (file,) = store.blobs.files()
    temporary = file.path.parent / ".tmp-123-abc"
    temporary.write_bytes(b"half")
    clearing = store.layout.directory / ".clearing-123-abc"
    (clearing / "blobs").mkdir(parents=True)
    assert plan(store, time.time()).leftovers == []
    chosen = plan(store, later(GRACE_SECONDS + 60))
    assert {left.path for left in chosen.leftovers} == {temporary, clearing}
    carry_out(store, chosen)
    assert not temporary.exists()
    assert not clearing.exists()
    assert held(store, key("a")) == [True]


def test_a_lock_that_a_killed_process_left_goes_after_the_grace_period(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    lock = store.layout.lock(key("a").hex)
    lock.parent.mkdir()
    lock.write_bytes(b"{}")
    assert plan(store, time.time()).leftovers == []
    chosen = plan(store, later(GRACE_SECONDS + 60))
    assert [left.path for left in chosen.leftovers] == [lock]
    carry_out(store, chosen)
    assert not lock.exists()


def test_a_record_of_source_goes_after_three_months_and_what_a_killed_writer_left_too(
    store: LocalStore, key: Key
) -> None:
    store.put(key("a"), Artifact(b"a"))
    store.write_source_record("ab" * 16, b"record")
    (store.layout.sources / ".tmp-host-1-ab").write_bytes(b"rec")
    assert plan(store, later(SOURCE_RECORD_SECONDS - 60)).leftovers == []
    chosen = plan(store, later(SOURCE_RECORD_SECONDS + 60))
    carry_out(store, chosen)
    assert list(store.layout.sources.iterdir()) == []


def test_a_kernel_or_op_that_nothing_refers_to_and_nobody_uses_goes_after_a_month(
    store: LocalStore, key: Key
) -> None:
    called, model = key("called"), key("model", "function")
    store.put(called, Artifact(b"k"))
    store.put(model, Artifact(b"m", references=[called.digest]))
    for level in ("kernel", "op", "function", "numba"):
        store.put(key("alone", level), Artifact(b"a"))
    assert plan(store, later(UNREFERENCED_SECONDS - 60)).entries == []
    chosen = plan(store, later(UNREFERENCED_SECONDS + 60))
    assert {entry.digest for entry in chosen.entries} == {key("alone").digest, key("alone", "op").digest}
    assert {victim.why for victim in chosen.entries} == {"pruned: nothing refers to it, not used for 30d"}
    store.delete([model.digest])
    assert len(plan(store, later(UNREFERENCED_SECONDS + 60)).entries) == 3


def test_what_was_found_damaged_is_kept_for_a_week(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    kept = quarantine_content(store.layout.root, "blob-x", b"damaged", store.guard)
    assert plan(store, later(QUARANTINE_SECONDS - 60)).leftovers == []
    assert [left.path for left in plan(store, later(QUARANTINE_SECONDS + 60)).leftovers] == [kept]


def test_stale_entries_are_those_of_another_toolchain_format_or_hash_version(
    store: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = CacheKey.build("kernel", {"toolchain": encode(toolchain()), "kernel": b"k"})
    with_scipy = {**toolchain(), "scipy": version_or_absent("scipy")}
    function = CacheKey.build("function", {"toolchain": encode(with_scipy), "graph": b"g"})
    of_pytensor = CacheKey.build(
        "function", {"toolchain": encode((toolchain(), with_scipy["scipy"])), "graph": b"h"}
    )
    theirs = CacheKey.build("kernel", {"toolchain": encode({"numba": "0.1"}), "kernel": b"k"})
    for one in (ours, function, of_pytensor, theirs, key("of no toolchain")):
        store.put(one, Artifact(b"a"))

    def stale() -> set[bytes]:
        return {entry.digest for entry in plan(store, time.time(), Criteria(stale=True)).entries}

    assert stale() == {theirs.digest}
    with monkeypatch.context() as newer:
        newer.setattr("cachegraph.key.HASH_VERSION", 99)
        assert len(stale()) == 5
    monkeypatch.setattr("cachegraph.store.maintenance.staleness.RECORD_FORMAT", 99)
    assert len(stale()) == 5


def test_an_index_quarantined_is_kept_for_a_week(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    store.close()
    status = store.layout.index.stat()
    quarantine_index(store.layout.index, (status.st_dev, status.st_ino))
    store.put(key("a"), Artifact(b"a"))
    assert plan(store, later(QUARANTINE_SECONDS - 60)).leftovers == []
    chosen = plan(store, later(QUARANTINE_SECONDS + 60))
    assert len(chosen.leftovers) == 1
    carry_out(store, chosen)
    assert list(store.layout.root.glob("*damaged*")) == []


def test_setting_aside_spares_an_index_that_was_replaced_already(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    quarantine_index(store.layout.index, (0, 0))
    assert held(store, key("a")) == [True]


def test_jobs_run_on_while_everything_is_pruned(store: LocalStore, key: Key) -> None:
    job = LocalStore(store.layout.directory)
    for i in range(10):
        job.put(key(i), Artifact(bytes((i,)) * 100_000, {"graph": b"g" * i}))
        carry_out(store, plan(store, time.time(), Criteria(max_size=0)))
        assert isinstance(job.get(key(i)), Miss)
        job.put(key(i), Artifact(bytes((i,)) * 100_000, {"graph": b"g" * i}))
        assert isinstance(job.get(key(i)), Hit)
    job.close()


def test_clear_removes_everything_and_running_jobs_starts_again(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a" * 100_000))
    store.write_source_record("ab" * 16, b"record")
    assert held(store, key("a")) == [True]
    assert clear(store.layout)
    assert list(store.layout.directory.iterdir()) == []
    assert not clear(store.layout)
    assert held(store, key("a")) == [False]
    store.put(key("a"), Artifact(b"a"))
    assert held(store, key("a")) == [True]


def test_clearing_what_cannot_be_removed_says_so(
    store: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(key("a"), Artifact(b"a"))

    def refuse(*_: object) -> None:
        raise PermissionError("not allowed")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(StoreError, match=r"clearing .*v1: found not allowed"):
        clear(store.layout)


def test_bytes_on_disk_counts_every_file(store: LocalStore, key: Key, tmp_path: Path) -> None:
    assert bytes_on_disk(store.layout) == 0
    store.put(key("a"), Artifact(b"a" * 100_000))
    store.close()
    expected = sum(path.stat().st_size for path in store.layout.root.rglob("*") if path.is_file())
    assert bytes_on_disk(store.layout) == expected > 100_000
