"""The cache: hit, miss with a reason, build and keep; and whatever breaks, the caller gets a value."""

from __future__ import annotations

import errno
import gc
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.cache import Artifact, Cache, Correction, Found, Hit, Miss, default_cache
from cachegraph.caching.counters import Counters, Tally
from cachegraph.errors import CacheMissError, SourceError
from cachegraph.key import CacheKey
from cachegraph.settings import Mode, OnMiss, Settings
from cachegraph.store.local.statistics import Totals, totals
from cachegraph.store.local.store import LocalStore

MakeCache = Callable[..., Cache]


@pytest.fixture
def make(cache_directory: Path) -> MakeCache:
    def of(mode: Mode = "readwrite", on_miss: OnMiss = "compile") -> Cache:
        return Cache(Settings(cache_directory, mode, on_miss))

    return of


@pytest.fixture(autouse=True)
def tally(monkeypatch: pytest.MonkeyPatch) -> Tally:
    """Give each test process-wide counters of its own."""
    fresh = Tally()
    monkeypatch.setattr("cachegraph.caching.records.PROCESS", fresh)
    return fresh


def key_of(text: str, level: str = "kernel") -> CacheKey:
    return CacheKey.build(level, {"graph": text.encode()})


def totals_of(directory: Path) -> Totals:
    store = LocalStore(directory)
    try:
        return totals(store.database)
    finally:
        store.close()


def build(payload: bytes = b"built", seconds: float = 2.0) -> Callable[[], Artifact]:
    return lambda: Artifact(payload, {}, {"compile": seconds})


def never() -> Artifact:
    raise AssertionError("built although there is an entry")


def identity(payload: bytes) -> bytes:
    return payload


def raising(error: Exception) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


def test_the_first_call_builds_and_the_second_finds(make: MakeCache) -> None:
    first = make().get_or_build(key_of("a"), build(), bytes.decode)
    assert (first.value, first.outcome, first.reason) == ("built", "miss", "never-seen")
    assert first.seconds == {"compile": 2.0}
    second = make().get_or_build(key_of("a"), never, bytes.decode)
    assert (second.value, second.outcome, second.reason) == ("built", "hit", "")
    assert second.seconds == {"compile": 2.0}
    assert 0 < second.load_seconds < 1


def test_lookup_and_store_are_the_two_halves(make: MakeCache) -> None:
    cache = make()
    assert cache.lookup(key_of("a")) == Miss("never-seen", "the index has no such key")
    assert cache.store(key_of("a"), Artifact(b"p", {"graph": b"g"}, {"compile": 1.0}))
    found = cache.lookup(key_of("a"))
    assert isinstance(found, Hit)
    assert (found.payload, found.seconds) == (b"p", {"compile": 1.0})
    assert cache.read_blob(found.blobs["graph"]) == b"g"


def test_a_cost_nobody_recorded_is_measured(make: MakeCache) -> None:
    found = make().get_or_build(key_of("a"), lambda: Artifact(b"p"), identity)
    assert list(found.seconds) == ["build"]
    assert 0 < found.seconds["build"] < 1


def test_a_payload_that_does_not_load_is_built_anew_and_replaced(
    make: MakeCache, tally: Tally, caplog: pytest.LogCaptureFixture
) -> None:
    cache = make()
    cache.store(key_of("a"), Artifact(b"\xff"))
    found = cache.get_or_build(key_of("a"), build(), bytes.decode)
    assert (found.value, found.outcome, found.reason) == ("built", "miss", "unreadable")
    assert "UnicodeDecodeError" in caplog.text
    assert cache.get_or_build(key_of("a"), never, bytes.decode).outcome == "hit"
    assert tally.snapshot().levels["kernel"] == {"hits": 1, "misses": 1}


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_loading_is_no_miss(make: MakeCache, stop: type[BaseException]) -> None:
    def interrupted(_: bytes) -> None:
        raise stop

    cache = make()
    cache.store(key_of("a"), Artifact(b"p"))
    with pytest.raises(stop):
        cache.get_or_build(key_of("a"), never, interrupted)


def test_what_build_raises_reaches_the_caller(make: MakeCache) -> None:
    error = ZeroDivisionError("in the compiler")
    with pytest.raises(ZeroDivisionError) as raised:
        make().get_or_build(key_of("a"), raising(error), identity)
    assert raised.value is error


def test_what_load_raises_on_what_was_built_reaches_the_caller_and_is_not_kept(make: MakeCache) -> None:
    cache = make()
    with pytest.raises(UnicodeDecodeError):
        cache.get_or_build(key_of("a"), build(b"\xff"), bytes.decode)
    assert isinstance(cache.lookup(key_of("a")), Miss)


def test_on_miss_error_forbids_building(make: MakeCache, tally: Tally) -> None:
    with pytest.raises(CacheMissError) as raised:
        make(on_miss="error").get_or_build(key_of("a", "op"), never, identity)
    assert (raised.value.level, raised.value.key) == ("op", key_of("a", "op").hex)
    assert raised.value.reason == "never-seen"
    assert tally.snapshot().misses == {"never-seen": 1}


def test_on_miss_error_does_not_mind_a_hit(make: MakeCache) -> None:
    make().store(key_of("a"), Artifact(b"p"))
    assert make(on_miss="error").get_or_build(key_of("a"), never, identity).value == b"p"


def test_on_miss_error_forbids_building_what_does_not_load(make: MakeCache) -> None:
    make().store(key_of("a"), Artifact(b"\xff"))
    with pytest.raises(CacheMissError, match="unreadable"):
        make(on_miss="error").get_or_build(key_of("a"), never, bytes.decode)


def test_readonly_finds_and_keeps_nothing(make: MakeCache, tally: Tally, cache_directory: Path) -> None:
    make().store(key_of("a"), Artifact(b"p"))
    cache = make("readonly")
    assert cache.get_or_build(key_of("a"), never, identity).outcome == "hit"
    assert not cache.store(key_of("b"), Artifact(b"p"))
    assert cache.get_or_build(key_of("b"), build(), identity).outcome == "miss"
    cache.flush()
    assert isinstance(make().lookup(key_of("b")), Miss)
    assert tally.snapshot().store_failures == {}
    assert totals_of(cache_directory).levels["kernel"].hits == 0


def test_off_neither_finds_nor_keeps_nor_touches(
    make: MakeCache, tally: Tally, cache_directory: Path
) -> None:
    cache = make("off")
    found = cache.get_or_build(key_of("a"), build(), identity)
    assert (found.value, found.reason) == (b"built", "disabled")
    assert not cache.store(key_of("a"), Artifact(b"p"))
    assert cache.read_blob("00" * 40) is None
    cache.note_bypass("function", "profiling")
    cache.flush()
    assert not cache_directory.exists()
    assert tally.snapshot().misses == {"disabled": 1}


def test_off_and_on_miss_error_says_disabled(make: MakeCache) -> None:
    with pytest.raises(CacheMissError, match="disabled"):
        make("off", "error").get_or_build(key_of("a"), never, identity)


STORE_FAILURES = [
    (OSError(errno.ENOSPC, "no space"), "full"),
    (OSError(errno.EDQUOT, "quota"), "full"),
    (OSError(errno.EROFS, "read-only"), "read-only"),
    (OSError(errno.EACCES, "not allowed"), "read-only"),
    (OSError(errno.EIO, "broken"), "io-error"),
    (sqlite3.OperationalError("database is locked"), "io-error"),
    (MemoryError(), "refused"),
    (RuntimeError("anything"), "refused"),
]


@pytest.mark.parametrize(
    ("error", "reason"), STORE_FAILURES, ids=lambda value: str(value) or type(value).__name__
)
def test_a_failing_store_is_counted_and_said_once(
    error: Exception,
    reason: str,
    make: MakeCache,
    tally: Tally,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(LocalStore, "put", raising(error))
    cache = make()
    assert cache.get_or_build(key_of("a"), build(), identity).value == b"built"
    assert not cache.store(key_of("b"), Artifact(b"p"))
    assert tally.snapshot().store_failures == {reason: 2}
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert reason in warnings[0].getMessage()


def test_counters_add_up_what_was_saved_and_spent(make: MakeCache, tally: Tally) -> None:
    cache = make()
    cache.get_or_build(key_of("a"), build(seconds=2.0), identity)
    cache.get_or_build(key_of("b", "op"), build(seconds=3.0), identity)
    found = cache.get_or_build(key_of("a"), never, identity)
    cache.note_bypass("function", "profiling")
    counted = tally.snapshot()
    assert counted.levels["kernel"] == {"hits": 1, "misses": 1}
    assert counted.levels["op"] == {"hits": 0, "misses": 1}
    assert counted.misses == {"never-seen": 2}
    assert counted.bypasses == {"profiling": 1}
    assert counted.seconds_spent == 5.0
    assert counted.seconds_saved == pytest.approx(2.0 - found.load_seconds)


def test_a_hit_that_does_not_pay_saves_less_than_nothing(make: MakeCache, tally: Tally) -> None:
    cache = make()
    cache.get_or_build(key_of("a"), build(seconds=0.0), identity)
    cache.get_or_build(key_of("a"), never, lambda payload: sum(range(1000)))
    assert tally.snapshot().seconds_saved < 0


def test_flush_writes_what_was_counted_once(make: MakeCache, cache_directory: Path) -> None:
    cache = make()
    cache.get_or_build(key_of("a"), build(), identity)
    for _ in range(3):
        cache.get_or_build(key_of("a"), never, identity)
    cache.note_bypass("function", "profiling")
    cache.flush()
    cache.flush()
    totals = totals_of(cache_directory)
    assert (totals.levels["kernel"].hits, totals.levels["kernel"].misses) == (3, 1)
    assert (totals.misses, totals.bypasses) == ({"never-seen": 1}, {"profiling": 1})
    assert totals.seconds_spent == 2.0
    assert 5.9 < totals.seconds_saved < 6.0
    store = LocalStore(cache_directory)
    (entry,) = store.scan()
    store.close()
    assert entry.uses == 3
    assert entry.last_used > entry.created
    assert entry.load_seconds > 0


def test_counts_are_written_when_nobody_holds_the_cache_any_more(
    make: MakeCache, cache_directory: Path
) -> None:
    cache = make()
    cache.get_or_build(key_of("a"), build(), identity)
    del cache
    gc.collect()
    assert totals_of(cache_directory).levels["kernel"].misses == 1


def test_a_cache_without_events_registers_nothing(make: MakeCache) -> None:
    assert make()._records._flush_at_exit is None


def test_a_flush_that_fails_is_silent(make: MakeCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = make()
    cache.get_or_build(key_of("a"), build(), identity)
    monkeypatch.setattr(LocalStore, "add_counts", raising(OSError(errno.ENOSPC, "no space")))
    cache.flush()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_starts_with_empty_counts(
    make: MakeCache, tally: Tally, cache_directory: Path
) -> None:
    cache = make()
    cache.get_or_build(key_of("a"), build(), identity)
    child = os.fork()
    if child == 0:
        counted: Counters = tally.snapshot()
        found = cache.get_or_build(key_of("a"), never, identity)
        cache.flush()
        os._exit(0 if counted.misses == {} and isinstance(found, Found) and found.outcome == "hit" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    cache.flush()
    level = totals_of(cache_directory).levels["kernel"]
    assert (level.hits, level.misses) == (1, 1)


def test_the_default_cache_follows_the_settings(
    cache_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = default_cache()
    assert first.settings.directory == cache_directory
    assert default_cache() is first
    monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path))
    second = default_cache()
    assert second.settings.directory == tmp_path
    assert second is not first


def corrected(found: Found[bytes]) -> Correction[bytes] | None:
    """Compare with what building gives, which is b"right"."""
    return (
        None
        if found.value == b"right"
        else Correction("it is wrong", Artifact(b"right", {}, {"b": 3.0}), b"right")
    )


def test_a_hit_that_is_not_what_building_gives_is_replaced_counted_and_set_aside(
    make: MakeCache, tally: Tally, caplog: pytest.LogCaptureFixture, cache_directory: Path
) -> None:
    cache = make("verify")
    cache.store(key_of("a"), Artifact(b"wrong"))
    found = cache.get_or_build(key_of("a"), never, identity, corrected)
    assert (found.value, found.outcome, found.reason) == (b"right", "miss", "mismatch")
    assert tally.snapshot().misses == {"mismatch": 1}
    assert tally.snapshot().levels["kernel"] == {"hits": 0, "misses": 1}
    [said] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert f"the kernel entry {key_of('a').hex} differs from a new build: it is wrong" in said
    [aside] = (cache_directory / "v1" / "damaged").iterdir()
    assert aside.read_bytes() == b"wrong"
    assert str(aside) in said
    again = make("verify").get_or_build(key_of("a"), never, identity, corrected)
    assert (again.value, again.outcome) == (b"right", "hit")


def test_only_the_mode_verify_compares(make: MakeCache) -> None:
    make().store(key_of("a"), Artifact(b"wrong"))
    for mode in ("readwrite", "readonly"):
        assert make(mode).get_or_build(key_of("a"), never, identity, corrected).value == b"wrong"


def test_where_nothing_can_be_set_aside_the_built_one_is_used_all_the_same(
    make: MakeCache, cache_directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = make("verify")
    cache.store(key_of("a"), Artifact(b"wrong"))
    (cache_directory / "v1" / "damaged").write_text("a file in the way")
    assert cache.get_or_build(key_of("a"), never, identity, corrected).value == b"right"
    assert "no place: that failed, too" in caplog.text


def test_a_comparison_that_fails_is_no_hit(make: MakeCache, caplog: pytest.LogCaptureFixture) -> None:
    cache = make("verify")
    cache.store(key_of("a"), Artifact(b"found"))
    failing: Callable[..., None] = raising(ValueError("no compiler"))
    with pytest.raises(MemoryError):
        cache.get_or_build(key_of("a"), raising(MemoryError()), identity, failing)  # type: ignore[arg-type]
    found = cache.get_or_build(key_of("a"), lambda: Artifact(b"built"), identity, failing)
    assert (found.value, found.outcome, found.reason) == (b"built", "miss", "unverified")
    assert make("readwrite").get_or_build(key_of("a"), never, identity).value == b"built"
    assert "building it again to verify it failed" in caplog.text


def test_of_what_is_built_together_nothing_is_stored_once_the_source_has_changed(
    make: MakeCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks: list[int] = []

    def changed() -> None:
        looks.append(1)
        raise SourceError("describing the source under", Path("package"), "a file that was changed")

    monkeypatch.setattr("cachegraph.caching.writing.check_relied_on", changed)
    keys = [key_of("a"), key_of("b"), key_of("c")]
    found = make().get_or_build_many(
        keys, lambda missing: [build()() for _ in missing], lambda _, content: content
    )
    assert [each.value for each in found.values()] == [b"built"] * 3
    assert len(looks) == 1
    assert "a file that was changed" in caplog.text
    monkeypatch.undo()
    fresh = make()
    assert [isinstance(fresh.lookup(key), Miss) for key in keys] == [True] * 3


def test_one_artifact_that_cannot_be_stored_leaves_the_others_stored(
    make: MakeCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalStore.put

    def failing(self: LocalStore, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> None:
        if key == key_of("b"):
            raise OSError(errno.ENOSPC, "full")
        put(self, key, artifact, load_seconds)

    monkeypatch.setattr(LocalStore, "put", failing)
    keys = [key_of("a"), key_of("b"), key_of("c")]
    make().get_or_build_many(keys, lambda missing: [build()() for _ in missing], lambda _, content: content)
    monkeypatch.undo()
    fresh = make()
    assert [isinstance(fresh.lookup(key), Hit) for key in keys] == [True, False, True]
