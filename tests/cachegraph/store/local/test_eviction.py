"""Eviction: each put keeps the limit, and evicts the entries that save the least time per byte."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cachegraph.cache import Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.activity import Activity
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.local import eviction
from cachegraph.store.local.eviction import GRACE_SECONDS, SELECT_LEAST_WORTH
from cachegraph.store.local.sizes import bytes_held
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.planning import Criteria
from cachegraph.store.maintenance.pruning import plan

Key = Callable[..., CacheKey]
LIMIT = 1_000_000


@pytest.fixture
def limited(cache_directory: Path) -> Iterator[LocalStore]:
    """A store with a limit of LIMIT bytes."""
    opened = LocalStore(cache_directory, LIMIT)
    yield opened
    opened.close()


def artifact(
    name: object, size: int = 50_000, seconds: float = 1.0, references: tuple[bytes, ...] = ()
) -> Artifact:
    """Return `size` bytes that differ for each name."""
    content = (str(name).encode() * size)[:size]
    return Artifact(content, seconds={"compile": seconds}, references=references)


def held(store: LocalStore) -> int:
    with store.database.writing() as connection:
        return bytes_held(connection)


def is_there(store: LocalStore, *keys: CacheKey) -> list[bool]:
    return [isinstance(store.get(key), Hit) for key in keys]


def use(store: LocalStore, key: CacheKey, times: int = 1) -> None:
    activity = Activity()
    for _ in range(times):
        activity.use(key.digest, None)
    assert store.add_counts(activity.take())


@pytest.mark.parametrize("size", [3_000, 50_000, 200_000], ids=["in pages", "a page chain", "a file"])
def test_the_limit_holds_after_every_put(size: int, limited: LocalStore, key: Key) -> None:
    for i in range(3 * LIMIT // size):
        limited.put(key(i), artifact(i, size))
        assert held(limited) <= LIMIT
        assert is_there(limited, key(i)) == [True]
    assert held(limited) > LIMIT - 3 * size
    files = sum(file.size for file in limited.blobs.files())
    assert files <= LIMIT, "the blobs of what was evicted are gone, too"


def test_without_a_limit_everything_stays(store: LocalStore, key: Key) -> None:
    for i in range(40):
        store.put(key(i), artifact(i))
    assert len(store.scan()) == 40


def test_what_saves_the_fewest_seconds_a_byte_goes_first(limited: LocalStore, key: Key) -> None:
    limited.put(key("dear"), artifact("dear", seconds=9.0))
    limited.put(key("large"), artifact("large", 400_000, seconds=9.0))
    limited.put(key("cheap"), artifact("cheap", seconds=0.1))
    for i in range(10):
        limited.put(key(i), artifact(i, seconds=5.0))
    assert is_there(limited, key("dear"), key("large"), key("cheap")) == [True, True, False]
    for i in range(10, 14):
        limited.put(key(i), artifact(i, seconds=5.0))
    assert is_there(limited, key("dear"), key("large"), key("cheap")) == [True, False, False]


def test_uses_count(limited: LocalStore, key: Key) -> None:
    for name in "ab":
        limited.put(key(name), artifact(name))
    use(limited, key("a"), times=30)
    for i in range(30):
        limited.put(key(i), artifact(i, seconds=2.0))
    assert is_there(limited, key("a"), key("b")) == [True, False]


def test_a_hit_that_does_not_pay_is_the_first_to_go(limited: LocalStore, key: Key) -> None:
    limited.put(key("slow to load"), artifact("slow to load", seconds=3.0), load_seconds=4.0)
    use(limited, key("slow to load"), times=50)
    for i in range(20):
        limited.put(key(i), artifact(i, seconds=0.01))
    assert is_there(limited, key("slow to load")) == [False]


def test_what_saved_much_is_overtaken_when_nobody_uses_it_any_more(limited: LocalStore, key: Key) -> None:
    limited.put(key("old glory"), artifact("old glory", seconds=4.0))
    use(limited, key("old glory"))
    for i in range(400):
        limited.put(key(i), artifact(i, seconds=1.0))
        if not is_there(limited, key("old glory"))[0]:
            break
    assert 40 < i < 399


def test_a_use_makes_an_entry_young_again(limited: LocalStore, key: Key) -> None:
    limited.put(key("used"), artifact("used"))
    for i in range(100):
        limited.put(key(i), artifact(i))
        if i % 10 == 0:
            use(limited, key("used"))
    assert is_there(limited, key("used")) == [True]


def test_what_an_entry_refers_to_is_not_evicted_before_it(limited: LocalStore, key: Key) -> None:
    kernel, model = key("kernel"), key("model", "function")
    limited.put(kernel, artifact("kernel", seconds=0.01))
    limited.put(model, artifact("model", seconds=50.0, references=(kernel.digest, model.digest)))
    for i in range(60):
        limited.put(key(i), artifact(i, seconds=1.0))
    assert is_there(limited, kernel, model) == [True, True]
    limited.delete([model.digest])
    for i in range(60, 80):
        limited.put(key(i), artifact(i, seconds=1.0))
    assert is_there(limited, kernel) == [False]


def test_a_reference_to_what_comes_later_counts(limited: LocalStore, key: Key) -> None:
    """An evicted kernel is compiled again while the function that calls it is still stored."""
    limited.put(key("model"), artifact("model", seconds=50.0, references=(key("kernel").digest,)))
    limited.put(key("kernel"), artifact("kernel", seconds=0.0))
    for i in range(60):
        limited.put(key(i), artifact(i))
    assert is_there(limited, key("kernel")) == [True]


def test_what_refers_to_each_other_goes_when_nothing_else_is_left_but_never_blocks_a_put(
    limited: LocalStore, key: Key
) -> None:
    for i in range(20):
        limited.put(key(i), artifact(i, references=(key((i + 1) % 20).digest,)))
    assert is_there(limited, key(19)) == [True]


def test_a_later_miss_says_evicted(limited: LocalStore, key: Key) -> None:
    for i in range(30):
        limited.put(key(i), artifact(i))
    found = limited.get(key(0))
    assert isinstance(found, Miss)
    assert found.reason == "evicted"
    assert found.detail.startswith("to keep 1.0 MB, as it saved the least time per byte, at ")


def test_a_blob_that_another_entry_refers_to_stays(limited: LocalStore, key: Key) -> None:
    shared = b"shared" * 20_000
    limited.put(key("a"), Artifact(b"a", {"graph": shared}, {"compile": 0.1}))
    limited.put(key("b"), Artifact(b"b", {"graph": shared}, {"compile": 99.0}))
    before = held(limited)
    for i in range(40):
        limited.put(key(i), artifact(i, seconds=2.0))
    found = limited.get(key("b"))
    assert is_there(limited, key("a")) == [False]
    assert isinstance(found, Hit)
    assert limited.read_blob(found.blobs["graph"]) == shared
    assert before < 300_000, "both refer to one blob, which is counted once"


def test_what_is_larger_than_the_limit_is_refused_and_takes_nothing_with_it(
    limited: LocalStore, key: Key, caplog: pytest.LogCaptureFixture
) -> None:
    limited.put(key("a"), artifact("a"))
    with pytest.raises(ValueError, match=r"it has 1000001 bytes.*raise CACHEGRAPH_MAX_SIZE"):
        limited.put(key("b"), artifact("b", LIMIT + 1))
    cache = Cache(Settings(limited.layout.directory, "readwrite", "compile", max_size=LIMIT))
    assert not cache.store(key("b"), artifact("b", LIMIT + 1))
    assert "raise CACHEGRAPH_MAX_SIZE" in caplog.text
    assert is_there(limited, key("a"), key("b")) == [True, False]
    cache._store.close()


def test_one_put_evicts_a_bounded_number_and_the_next_ones_the_rest(
    store: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eviction, "MOST_EVICTED", 16)
    for i in range(60):
        store.put(key(i), artifact(i, 20_000))
    lowered = LocalStore(store.layout.directory, 200_000)
    lowered.put(key("next"), artifact("next", 20_000))
    assert len(store.scan()) == 45
    for i in range(3):
        lowered.put(key(("more", i)), artifact(i, 20_000))
    assert held(store) <= 200_000
    lowered.close()


def test_victims_come_from_an_index_so_that_a_put_looks_at_no_others(store: LocalStore, key: Key) -> None:
    store.put(key("a"), artifact("a"))
    explained = store.database.select_all(f"EXPLAIN QUERY PLAN {SELECT_LEAST_WORTH}", (b"", 16))
    assert [row[-1] for row in explained] == ["SCAN entry USING INDEX entry_by_worth"]


def test_what_is_left_over_among_the_blobs_goes_with_an_eviction_after_the_grace_period(
    limited: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited.put(key("a"), artifact("a", 100_000, seconds=99.0))
    limited.put(key("a"), artifact("other", 100_000, seconds=99.0))
    replaced = next(file for file in limited.blobs.files() if limited.read_blob(file.digest)[:1] == b"a")  # type: ignore[index]
    leftover = replaced.path.parent / ".tmp-host-1-2"
    leftover.write_bytes(b"half")
    monkeypatch.setattr(os, "urandom", lambda n: bytes.fromhex(replaced.digest[:2]) * n)
    fill(limited, key, 0)
    assert replaced.path.exists()
    assert leftover.exists()
    long_ago = time.time() - GRACE_SECONDS - 60
    for path in (replaced.path, leftover):
        os.utime(path, (long_ago, long_ago))
    fill(limited, key, 30)
    assert not replaced.path.exists()
    assert not leftover.exists()
    assert is_there(limited, key("a")) == [True]


def fill(store: LocalStore, key: Key, first: int) -> None:
    for i in range(first, first + 30):
        store.put(key(i), artifact(i))


def test_blobs_that_cannot_be_removed_do_not_fail_the_put(
    limited: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bool:
        raise PermissionError("not allowed")

    monkeypatch.setattr(eviction, "remove_file", refuse)
    for i in range(20):
        limited.put(key(i), artifact(i, 100_000))
    assert is_there(limited, key(19), key(0)) == [True, False]


PUT_MANY = """
import sys
from pathlib import Path
from cachegraph.cache import Artifact, Cache, Hit
from cachegraph.key import CacheKey
from cachegraph.settings import Settings

directory, (number, limit, puts) = Path(sys.argv[1]), map(int, sys.argv[2:])
cache = Cache(Settings(directory, "readwrite", "compile", max_size=limit))
for i in range(puts):
    size = (2_000, 20_000, 120_000)[i % 3]
    key = CacheKey.build("kernel", {"graph": f"{number if i % 2 else 'shared'} {i}".encode()})
    content = key.digest * (size // 16)
    assert cache.store(key, Artifact(content, {"graph": content[:5000]}, {"compile": i % 7})), i
    found = cache.lookup(key)
    assert not isinstance(found, Hit) or found.payload == content
    if i % 10 == 0:
        cache.flush()
"""


def watch(store: LocalStore, processes: list[subprocess.Popen[str]]) -> list[int]:
    """Yield the bytes that the store holds, repeatedly until the processes have ended."""
    seen = []
    while any(process.poll() is None for process in processes):
        with suppress(FileNotFoundError):  # no process has created it yet
            seen.append(held(store))
        time.sleep(0.02)
    return seen


@pytest.mark.stress
def test_the_limit_holds_while_eight_processes_write(
    start_python: Callable[..., subprocess.Popen[str]], store: LocalStore
) -> None:
    limit = 5_000_000
    puts = 3000 if os.environ.get("CACHEGRAPH_STRESS") == "full" else 60
    processes = [start_python(PUT_MANY, store.layout.directory, number, limit, puts) for number in range(8)]
    seen = watch(store, processes)
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, outputs
    assert limit / 2 < max(seen) <= limit
    files = sum(file.size for file in store.blobs.files())
    assert files <= limit + 8 * 125_000, "beside the limit, one artifact a process"
    wrong = [entry.hex for entry in store.scan() if store.read_blob(blob_of(store, entry.digest)) is None]
    assert wrong == []


def blob_of(store: LocalStore, digest: bytes) -> str:
    return store.catalogue.references_of(digest)[-1].digest


def test_one_put_evicts_no_more_than_it_needs_room_for(limited: LocalStore, key: Key) -> None:
    for i in range(900):
        limited.put(key(i), artifact(i, 600, seconds=2.0))
    full = LocalStore(limited.layout.directory, held(limited))
    before = len(full.scan())
    for i in range(30):
        full.put(key(("new", i)), artifact(i, 600, seconds=3.0))
    assert before - 2 <= len(full.scan()) <= before, "for each one that came one went"
    full.close()


def test_what_is_remembered_of_evictions_takes_no_room_from_what_is_kept(
    limited: LocalStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachegraph.store.local.eviction.EVICTED_KEPT", 50)
    for i in range(400):
        limited.put(key(i), artifact(i, 20_000))
    assert held(limited) > LIMIT - 25_000
    remembered = limited.database.select_all("SELECT digest FROM evicted ORDER BY rowid", ())
    assert len(remembered) == 50
    found = limited.get(key(0))
    assert isinstance(found, Miss)
    assert found.reason == "never-seen", "it was forgotten for what was evicted since"


@pytest.mark.parametrize("size", [300, 30_000, 100_000])
def test_what_prune_keeps_is_what_the_limit_keeps(size: int, store: LocalStore, key: Key) -> None:
    for i in range(20):
        store.put(key(i), artifact(f"{i}.", size))
    size_held = held(store)
    assert size_held == sum(entry.size for entry in store.scan()) == plan(store, time.time()).bytes_before
    assert plan(store, time.time(), Criteria(max_size=size_held)).entries == []
    assert len(plan(store, time.time(), Criteria(max_size=size_held - 1)).entries) == 1
    limited = LocalStore(store.layout.directory, size_held)
    limited.put(key(0), artifact("0.", size))
    assert len(limited.scan()) == 20
    limited.close()


def test_the_bytes_held_are_right_whatever_happens_to_entries(store: LocalStore, key: Key) -> None:
    for i in range(6):
        store.put(key(i), artifact(i, 100 * 10**i))
    store.put(key(0), artifact("another", 5_000))
    store.delete([key(3).digest, key(4).digest, key("nowhere").digest])
    assert held(store) == sum(entry.size for entry in store.scan())


def test_sizes_are_about_what_the_index_takes_on_the_disk(store: LocalStore, key: Key) -> None:
    for i in range(300):
        content = os.urandom(200 + 17 * i)
        store.put(key(i), Artifact(content, seconds={"a": 1.0}, summary="a", references=[os.urandom(16)] * 2))
    ((used,),) = store.database.select_all("SELECT sum(pgsize - unused) FROM dbstat", ()) or ((0,),)
    assert 0.8 < used / held(store) < 1.2
