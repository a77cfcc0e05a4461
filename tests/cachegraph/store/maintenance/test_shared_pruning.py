"""Pruning a shared directory: which files go and which stay while other hosts use it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.errors import StoreError
from cachegraph.key import CacheKey
from cachegraph.store.activity import Activity
from cachegraph.store.entry import Artifact, Hit
from cachegraph.store.maintenance.planning import UNREFERENCED_SECONDS, Criteria
from cachegraph.store.maintenance.pruning import (
    HALF_LIFE_SECONDS,
    USE_LOG_SECONDS,
    carry_out,
    plan,
    worth,
)
from cachegraph.store.maintenance.pruning import (
    SHARED_GRACE_SECONDS as GRACE_SECONDS,
)
from cachegraph.store.paths import file_size
from cachegraph.store.shared.store import SharedStore

Key = Callable[..., CacheKey]
DAY = 86400.0


@pytest.fixture
def shared(tmp_path: Path) -> SharedStore:
    return SharedStore(tmp_path / "shared", network=False)


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def held(store: SharedStore, *keys: CacheKey) -> list[bool]:
    return [isinstance(store.get(key), Hit) for key in keys]


def files(store: SharedStore) -> int:
    return sum(path.is_file() for path in store.layout.root.rglob("*"))


def test_nothing_is_removed_without_a_reason(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a" * 100_000, {"graph": b"g"}))
    chosen = plan(shared, time.time() + 10 * UNREFERENCED_SECONDS)
    assert (chosen.entries, chosen.blobs, chosen.leftovers) == ([], [], [])
    assert chosen.bytes_before == chosen.bytes_after > 100_000


def test_an_absent_directory_is_planned_and_not_made(shared: SharedStore) -> None:
    chosen = plan(shared, time.time(), Criteria(max_size=0, older_than=0.0))
    assert carry_out(shared, chosen) == 0
    assert not shared.layout.directory.exists()


def test_what_nobody_wrote_or_renewed_for_long_goes_with_its_blobs(shared: SharedStore, key: Key) -> None:
    for name in "abc":
        shared.put(key(name), Artifact(name.encode() * 100_000, {"graph": b"shared by all"}))
    future = time.time() + 19 * DAY
    os.utime(shared.layout.entry(key("c").hex), (future, future))
    chosen = plan(shared, time.time() + 20 * DAY, Criteria(unused_for=10 * DAY))
    assert {entry.digest for entry in chosen.entries} == {key("a").digest, key("b").digest}
    assert held(shared, *map(key, "abc")) == [True] * 3, "a plan removes nothing"
    assert carry_out(shared, chosen) > 100_000
    found = shared.get(key("c"))
    assert isinstance(found, Hit)
    assert shared.read_blob(found.blobs["graph"]) == b"shared by all"


def test_older_than_counts_from_when_an_entry_was_made(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a"))
    assert plan(shared, time.time() + 80 * DAY, Criteria(older_than=90 * DAY)).entries == []
    assert len(plan(shared, time.time() + 100 * DAY, Criteria(older_than=90 * DAY)).entries) == 1


def test_the_least_worth_go_until_the_size_is_kept_and_no_kernel_before_its_function(
    shared: SharedStore, key: Key
) -> None:
    kernel, model = key("kernel"), key("model", "function")
    shared.put(kernel, Artifact(b"k" * 50_000, seconds={"compile": 0.01}))
    shared.put(model, Artifact(b"m" * 50_000, seconds={"rewrite": 9.0}, references=[kernel.digest]))
    shared.put(key("cheap"), Artifact(b"c" * 50_000, seconds={"compile": 0.1}))
    shared.put(key("dear"), Artifact(b"d" * 50_000, seconds={"compile": 10.0}))
    before = plan(shared, time.time()).bytes_before
    order = []
    for left in (3, 2, 1):
        chosen = plan(shared, time.time(), Criteria(max_size=before * left // 4 + 2000))
        order.append({entry.digest for entry in chosen.entries})
        assert chosen.bytes_after <= before * left // 4 + 2000
    assert order == [
        {key("cheap").digest},
        {key("cheap").digest, model.digest},
        {key("cheap").digest, model.digest, kernel.digest},
    ]
    carry_out(shared, chosen)
    assert held(shared, kernel, model, key("cheap"), key("dear")) == [False, False, False, True]


def test_the_least_recently_used_goes_before_the_least_recently_written(
    shared: SharedStore, key: Key
) -> None:
    now = time.time()
    for name, written in (("old", now), ("new", now + 10 * DAY)):
        shared.put(key(name), Artifact(name.encode(), seconds={"compile": 1.0}))
        os.utime(shared.layout.entry(key(name).hex), (written, written))
    activity = Activity()
    activity.use(key("old").digest, None)
    batch = activity.take()
    batch.uses[key("old").digest].last_used = now + 20 * DAY
    assert shared.add_counts(batch)
    unused, small = Criteria(unused_for=25 * DAY), Criteria(max_size=600)
    for criteria in (unused, small):
        chosen = plan(shared, now + 40 * DAY, criteria)
        assert [entry.digest for entry in chosen.entries] == [key("new").digest]
    assert len(plan(shared, now + 50 * DAY, unused).entries) == 2


def test_a_use_log_goes_when_nothing_was_appended_for_long(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a"))
    assert shared.add_counts(Activity().take())
    [log] = shared.layout.uses.iterdir()
    assert plan(shared, time.time() + USE_LOG_SECONDS - DAY).leftovers == []
    [leftover] = plan(shared, time.time() + USE_LOG_SECONDS + DAY).leftovers
    assert leftover.path == log


def test_worth_halves_with_the_half_life(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a" * 99, seconds={"compile": 10.0}))
    (entry,) = shared.scan()
    now = worth(entry, entry.last_used)
    assert now == pytest.approx(10.0 / (file_size(shared.layout.entry(key("a").hex)) + 1))
    assert worth(entry, entry.last_used + HALF_LIFE_SECONDS) == pytest.approx(now / 2)


def test_unreferenced_blobs_and_leftovers_go_after_the_grace_period(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a" * 100_000))
    shared.put(key("a"), Artifact(b"other"))
    entries = shared.layout.entry(key("a").hex).parent
    leases = shared.layout.lease(key("a").hex).parent
    leases.mkdir(parents=True)
    left = [entries / ".tmp-host-1-2", leases / f"{key('a').hex}.1"]
    for path in left:
        path.write_bytes(b"half")
    assert plan(shared, time.time() + GRACE_SECONDS - 60).steps == 0
    chosen = plan(shared, time.time() + GRACE_SECONDS + 60)
    assert [blob.size for blob in chosen.blobs] == [100_000]
    assert sorted(leftover.path for leftover in chosen.leftovers) == sorted(left)
    assert carry_out(shared, chosen) == 100_008
    assert files(shared) == 1
    assert held(shared, key("a")) == [True]


def test_a_blob_that_a_writer_renewed_after_the_plan_stays(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a" * 100_000))
    shared.delete([key("a").digest])
    (file,) = shared.blobs.files()
    age(file.path, 2 * GRACE_SECONDS)
    chosen = plan(shared, time.time())
    assert len(chosen.blobs) == 1
    shared.put(key("b"), Artifact(b"a" * 100_000))
    assert carry_out(shared, chosen) == 0
    assert held(shared, key("b")) == [True]


def test_a_damaged_entry_keeps_nobody_from_pruning(shared: SharedStore, key: Key) -> None:
    shared.put(key("a"), Artifact(b"a"))
    shared.put(key("b"), Artifact(b"b"))
    shared.layout.entry(key("a").hex).write_bytes(b"no entry")
    chosen = plan(shared, time.time(), Criteria(max_size=0))
    assert [entry.digest for entry in chosen.entries] == [key("b").digest]
    assert carry_out(shared, chosen) > 0


def test_stale_entries_are_those_of_other_releases(
    shared: SharedStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachegraph.fingerprint.encoding import encode
    from cachegraph.toolchain import toolchain

    ours = CacheKey.build("kernel", {"toolchain": encode(toolchain()), "kernel": b"k"})
    theirs = CacheKey.build("kernel", {"toolchain": encode({"numba": "0.1"}), "kernel": b"k"})
    for store_key in (ours, theirs, key("of no toolchain")):
        shared.put(store_key, Artifact(b"a"))
    chosen = plan(shared, time.time(), Criteria(stale=True))
    assert [entry.digest for entry in chosen.entries] == [theirs.digest]
    monkeypatch.setattr("cachegraph.key.HASH_VERSION", 99)
    assert len(plan(shared, time.time(), Criteria(stale=True)).entries) == 3


def test_what_is_read_from_a_shared_directory_is_renewed_once_a_day(
    shared: SharedStore, key: Key, cache_directory: Path
) -> None:
    from cachegraph.store.local.store import LocalStore
    from cachegraph.store.tiers import TieredStore

    shared.put(key("a"), Artifact(b"a", {"graph": b"g"}, {"compile": 1.0}, "what it is", [key("b").digest]))
    path = shared.layout.entry(key("a").hex)
    tiers = TieredStore(LocalStore(cache_directory), [shared])
    for days, renewed in ((3, True), (0.5, False)):
        age(path, days * DAY)
        tiers.local.delete([key("a").digest])
        assert isinstance(tiers.get(key("a")), Hit)
        tiers.add_counts(Activity().take())
        assert (time.time() - path.stat().st_mtime < 60) == renewed
    (copied,) = tiers.scan()
    assert copied.summary == "what it is"
    assert tiers.local.catalogue.entry_references() == [(key("a").digest, key("b").digest)]
    tiers.close()


@pytest.mark.parametrize("place", ["e/aa", "l/aa", "l", "b/aa", "b", "e", "damaged"])
def test_files_that_somebody_pointed_the_cache_at_stay(
    place: str, shared: SharedStore, tmp_path: Path
) -> None:
    """A user who may write to the directory must not choose the files that another user prunes."""
    shared.guard.make_directory(shared.layout.root)
    thesis = tmp_path / "thesis"
    (thesis / "aa").mkdir(parents=True)
    for directory in (thesis, thesis / "aa"):
        for name in ("chapter", ".tmp-notes", "ab" * 32, "ab" * 16):
            (directory / name).write_text("years")
            age(directory / name, 100 * DAY)
    link = shared.layout.root / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(thesis, target_is_directory=True)
    every = Criteria(max_size=0, older_than=0.0)
    if place == "e":
        with pytest.raises(StoreError, match=r"nothing is removed: .* a symbolic link"):
            plan(shared, time.time() + 100 * DAY, every)
    else:
        carry_out(shared, plan(shared, time.time() + 100 * DAY, every))
    assert sum(path.is_file() for path in thesis.rglob("*")) == 8
