"""Single flight: of all who miss a key at once one builds; and nothing that goes wrong with it keeps anybody from building."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cachegraph import single_flight
from cachegraph.cache import Artifact, Cache, Found
from cachegraph.key import CacheKey
from cachegraph.settings import Mode, Settings
from cachegraph.single_flight import LEAST_WAIT, MOST_WAIT, UNKNOWN_WAIT, SingleFlight, longest_wait
from cachegraph.store.claims.node_lock import NodeLock
from cachegraph.store.protocol import Claim, Holder, Pauses


def key_of(text: object, level: str = "kernel") -> CacheKey:
    return CacheKey.build(level, {"graph": str(text).encode()})


class Builds:
    """Counts what is built, and how often; a build takes `seconds`."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.seconds = seconds
        self.built: list[CacheKey] = []

    def __call__(self, keys: Sequence[CacheKey]) -> list[Artifact]:
        time.sleep(self.seconds)
        self.built += keys
        return [Artifact(key.hex.encode(), {}, {"compile": 1.0}) for key in keys]


class Held:
    """A claim that somebody else has, for good or until `free` is set."""

    pauses = Pauses()
    may_be_elsewhere = True

    def __init__(self) -> None:
        self.free = False
        self.holding = False
        self.asked = 0

    def acquire(self) -> Holder | None:
        self.asked += 1
        self.holding = self.free
        return None if self.free else Holder("n7", 77, 0.0)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def mark(self, unkept: bool) -> None:
        pytest.fail("nothing was built in vain")

    def release(self) -> None:
        self.holding = False


@pytest.fixture
def cache(cache_directory: Path) -> Cache:
    return Cache(Settings(cache_directory, "readwrite", "compile"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait for longer than a moment."""
    monkeypatch.setattr(single_flight, "UNKNOWN_WAIT", 0.3)
    monkeypatch.setattr(single_flight, "LEAST_WAIT", 0.3)
    monkeypatch.setattr(single_flight, "MOST_WAIT", 0.3)


def node_lock(cache: Cache, key: CacheKey) -> Claim:
    """Return the claim on a key that every process of the node has to acquire."""
    [claim] = cache._store.claims(key)
    return claim


def get_many(cache: Cache, keys: Sequence[CacheKey], builds: Builds) -> dict[CacheKey, Found[bytes]]:
    found = cache.get_or_build_many(keys, builds, lambda _, payload: payload)
    assert {key: one.value for key, one in found.items()} == {key: key.hex.encode() for key in keys}
    return found


def at_once(*works: Callable[[], object]) -> list[object]:
    """Run in threads that start together; return what each returned, or raised."""
    ready = threading.Barrier(len(works))
    results: list[object] = [None] * len(works)

    def run(number: int, work: Callable[[], object]) -> None:
        ready.wait()
        try:
            results[number] = work()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return results


def lock_files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("v1/l*/**/*") if path.is_file())


def test_of_many_threads_that_miss_one_key_one_builds(cache: Cache, cache_directory: Path) -> None:
    builds = Builds()
    found = at_once(*[lambda: get_many(cache, [key_of("a")], builds)[key_of("a")].outcome] * 8)
    assert builds.built == [key_of("a")]
    assert sorted(map(str, found)) == ["hit"] * 7 + ["miss"]
    assert lock_files(cache_directory) == []


def test_two_caches_of_one_directory_build_once(cache_directory: Path) -> None:
    builds = Builds()
    settings = Settings(cache_directory, "readwrite", "compile")
    at_once(*[lambda: get_many(Cache(settings), [key_of("a")], builds)] * 4)
    assert builds.built == [key_of("a")]


def test_sets_that_overlap_are_each_built_once_and_nobody_waits_for_ever(cache: Cache) -> None:
    builds = Builds(0.02)
    sets = [[key_of(n % 12) for n in range(start, start + 6)] for start in range(12)]
    wants = [keys if n % 2 else keys[::-1] for n, keys in enumerate(sets)]
    results = at_once(*[lambda keys=keys: get_many(cache, keys, builds) for keys in wants])  # type: ignore[misc]
    assert all(isinstance(result, dict) for result in results), results
    assert sorted(key.hex for key in builds.built) == sorted(key_of(n).hex for n in range(12))


def test_what_is_free_is_built_before_what_another_builds_is_waited_for(cache: Cache) -> None:
    """The keys that are held are not waited for while keys are held that somebody else may want."""
    keys = sorted((key_of(n) for n in range(3)), key=lambda key: key.digest)
    claims = {key: Held() for key in keys}
    for key in keys[1:]:
        claims[key].free = True
    flight = SingleFlight(lambda key: [claims[key]], lambda _: None, lambda *_: False)
    turns = flight.turns(keys)
    assert next(turns) == keys[1:]
    assert [claims[key].holding for key in keys] == [False, True, True]
    claims[keys[0]].free = True
    assert next(turns) == keys[:1]
    assert [claims[key].holding for key in keys] == [True, False, False]
    assert next(turns, None) is None
    assert not any(claim.holding for claim in claims.values())


def test_a_nearer_claim_is_given_back_while_there_is_something_else_to_build() -> None:
    near, far = Held(), Held()
    near.free = True
    flight = SingleFlight(
        lambda key: [near, far] if key == key_of("held") else [], lambda _: None, lambda *_: False
    )
    turns = flight.turns([key_of("held"), key_of("free")])
    assert next(turns) == [key_of("free")]
    assert not near.holding
    turns.close()


def test_one_process_of_a_node_asks_farther_away() -> None:
    near, far = Held(), Held()
    far.free = True
    flight = SingleFlight(lambda _: [near, far], lambda _: 0.0, lambda *_: False)
    waiting = threading.Thread(target=lambda: next(flight.turns([key_of("a")])), daemon=True)
    waiting.start()
    while near.asked < 5:
        time.sleep(0.01)
    assert far.asked == 0
    near.free = True
    waiting.join(10)
    assert far.asked == 1


@pytest.mark.usefixtures("impatient")
def test_a_holder_that_hangs_is_waited_for_no_longer_than_the_bound(
    cache: Cache, caplog: pytest.LogCaptureFixture, cache_directory: Path
) -> None:
    keys = [key_of(number) for number in range(30)]
    hung = [node_lock(cache, key) for key in keys]
    assert {claim.acquire() for claim in hung} == {None}
    builds = Builds(0.0)
    begin = time.monotonic()
    with caplog.at_level(logging.INFO, "cachegraph"):
        get_many(cache, keys, builds)
    assert 0.3 <= time.monotonic() - begin < 0.3 * len(keys)  # once, not once a key
    assert sorted(builds.built, key=str) == sorted(keys, key=str)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert len(said) == 2 * len(keys)
    assert f"is being built by process {os.getpid()} on {os.uname().nodename}, since 20" in said[0]
    assert "building it here" in said[1]
    for claim in hung:
        claim.release()
    again = Cache(cache.settings).get_or_build(keys[0], lambda: pytest.fail("built"), bytes)  # type: ignore[arg-type, return-value]
    assert again.outcome == "hit"


@pytest.mark.parametrize("where", ["local", "shared"])
def test_who_waits_takes_what_is_stored_while_its_claim_is_still_held(
    cache: Cache, tmp_path: Path, where: str
) -> None:
    """A portion is held until all of it is built and given back; a holder may also hang after it has stored."""
    settings = (
        cache.settings
        if where == "local"
        else Settings(tmp_path / "elsewhere", "readwrite", "compile", tmp_path / "shared")
    )
    holder = Cache(settings)
    held = holder._store.claims(key_of("a"))
    assert [claim.acquire() for claim in held] == [None] * len(held)
    waiting: list[object] = []
    thread = threading.Thread(
        target=lambda: waiting.append(
            Cache(settings).get_or_build(key_of("a"), lambda: Artifact(b"b"), bytes)
        )
    )
    thread.start()
    time.sleep(0.2)
    assert waiting == []
    assert holder.store(key_of("a"), Artifact(b"stored"))
    thread.join(5)
    assert [(found.value, found.outcome) for found in waiting] == [(b"stored", "hit")]  # type: ignore[attr-defined]
    for claim in held:
        claim.release()


def test_nobody_waits_for_what_cannot_be_kept(cache_directory: Path) -> None:
    """All build at once after the first has built in vain; and when it can be kept again, one builds."""
    settings = Settings(cache_directory, "readwrite", "compile", max_size=1000)
    builds = Builds(0.3)

    def build() -> bytes:
        def large() -> Artifact:
            builds([key_of("a")])
            return Artifact(b"x" * 2000)

        return Cache(settings).get_or_build(key_of("a"), large, bytes).value

    begin = time.monotonic()
    assert at_once(*[build] * 8) == [b"x" * 2000] * 8
    assert time.monotonic() - begin < 0.3 * 4
    assert len(builds.built) == 8
    settings = Settings(cache_directory, "readwrite", "compile")
    build()
    assert lock_files(cache_directory) == []
    Cache(settings)._store.delete([key_of("a").digest])
    builds.built.clear()
    assert at_once(*[build] * 4) == [b"x" * 2000] * 4
    assert len(builds.built) == 1


def test_threads_of_one_cache_do_not_wait_for_what_cannot_be_kept(cache_directory: Path) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile", max_size=1000))

    def large() -> Artifact:
        time.sleep(0.3)
        return Artifact(b"x" * 2000)

    begin = time.monotonic()
    at_once(*[lambda: cache.get_or_build(key_of("a"), large, bytes)] * 8)
    assert time.monotonic() - begin < 0.3 * 4


def test_the_longest_wait_comes_from_the_recorded_cost(cache: Cache) -> None:
    assert longest_wait(None) == UNKNOWN_WAIT
    assert longest_wait(0.0) == LEAST_WAIT
    assert longest_wait(20.0) == 200.0
    assert longest_wait(1e9) == MOST_WAIT
    store = cache._store
    assert store.recorded_cost(key_of("a")) is None
    cache.store(key_of("a"), Artifact(b"a", {}, {"compile": 2.0, "link": 1.0}))
    cache.store(key_of("b"), Artifact(b"b", {}, {"compile": 50.0}))
    assert store.recorded_cost(key_of("a")) == 3.0
    assert store.recorded_cost(key_of("never seen")) == 50.0
    assert store.recorded_cost(key_of("never seen", "function")) is None
    store.delete([key_of("b").digest])
    assert store.recorded_cost(key_of("b")) == 3.0
    store.close()
    store.layout.index.write_bytes(b"not an index at all" * 100)
    assert Cache(cache.settings)._store.recorded_cost(key_of("a")) is None


def test_a_builder_that_raises_frees_the_others(cache: Cache, cache_directory: Path) -> None:
    begun: list[int] = []

    def build() -> Artifact:
        begun.append(1)
        time.sleep(0.05)
        if len(begun) < 3:
            raise ValueError("no kernel for this")
        return Artifact(b"built")

    results = at_once(*[lambda: cache.get_or_build(key_of("a"), build, bytes).value] * 6)
    assert len(begun) == 3
    assert sum(isinstance(result, ValueError) for result in results) == 2
    assert results.count(b"built") == 4
    assert lock_files(cache_directory) == []


def test_a_nested_build_takes_the_claims_it_needs_and_a_circle_none(
    cache: Cache, cache_directory: Path
) -> None:
    """A function whose build asks for its Op and kernels, and for itself."""
    builds = Builds(0.0)

    def build() -> Artifact:
        get_many(cache, [key_of("op", "op")], builds)
        get_many(cache, [key_of("k1"), key_of("k2")], builds)
        return Artifact(cache.get_or_build(key_of("f", "function"), lambda: Artifact(b"inner"), bytes).value)

    begin = time.monotonic()
    assert cache.get_or_build(key_of("f", "function"), build, bytes).value == b"inner"
    assert time.monotonic() - begin < 20
    assert len(builds.built) == 3
    assert lock_files(cache_directory) == []


def test_functions_that_share_kernels_nest_without_a_deadlock(cache: Cache) -> None:
    builds = Builds(0.02)

    def make(number: int) -> bytes:
        def build() -> Artifact:
            get_many(cache, [key_of(f"op{number % 2}", "op")], builds)
            get_many(cache, [key_of(n) for n in (number, number + 1, number + 2)][:: (-1) ** number], builds)
            return Artifact(b"%d" % number)

        return cache.get_or_build(key_of(number, "function"), build, bytes).value

    results = at_once(*[lambda n=n // 2: make(n) for n in range(8)])  # type: ignore[misc]
    assert results == [b"%d" % (n // 2) for n in range(8)]
    assert len(builds.built) == len(set(builds.built)) == 6 + 2


@pytest.mark.usefixtures("impatient")
def test_builds_that_ask_for_each_other_end_with_the_longest_wait(cache: Cache) -> None:
    def make(mine: str, other: str) -> bytes:
        def build() -> Artifact:
            time.sleep(0.1)
            cache.get_or_build(key_of(other), lambda: Artifact(other.encode()), bytes)
            return Artifact(mine.encode())

        return cache.get_or_build(key_of(mine), build, bytes).value

    assert at_once(lambda: make("a", "b"), lambda: make("b", "a")) == [b"a", b"b"]


@pytest.mark.parametrize("mode", ["readonly", "off"])
def test_who_stores_nothing_waits_for_nobody(cache: Cache, cache_directory: Path, mode: Mode) -> None:
    hung = node_lock(cache, key_of("a"))
    assert hung.acquire() is None
    begin = time.monotonic()
    get_many(Cache(Settings(cache_directory, mode, "compile")), [key_of("a")], Builds(0.0))
    assert time.monotonic() - begin < 20
    hung.release()


def test_a_hit_claims_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    get_many(cache, [key_of("a")], Builds(0.0))
    monkeypatch.setattr(SingleFlight, "turns", lambda *_: pytest.fail("a hit asked for its turn"))
    assert get_many(cache, [key_of("a")], Builds())[key_of("a")].outcome == "hit"


def test_where_nothing_can_be_locked_everybody_builds(cache: Cache, cache_directory: Path) -> None:
    (cache_directory / "v1").mkdir(parents=True)
    (cache_directory / "v1" / "locks").write_text("a file in the way")
    builds = Builds(0.0)
    get_many(cache, [key_of("a")], builds)
    assert builds.built == [key_of("a")]
    other = Cache(Settings(cache_directory / "v1" / "locks" / "below", "readwrite", "compile"))
    get_many(other, [key_of("a")], builds)
    get_many(other, [key_of("a")], builds)
    assert len(builds.built) == 3


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOLCK, errno.ENOSYS]
)
def test_a_lock_that_fails_is_no_lock(cache: Cache, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def fail(_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(NodeLock, "acquire", fail)
    builds = Builds(0.0)
    get_many(cache, [key_of("a")], builds)
    assert builds.built == [key_of("a")]


def test_the_layers_that_work_hold_when_one_fails() -> None:
    class Broken(Held):
        def acquire(self) -> Holder | None:
            raise OSError(errno.EROFS, "read-only")

    sound = Held()
    sound.free = True
    flight = SingleFlight(lambda _: [Broken(), sound], lambda _: None, lambda *_: False)
    turns = flight.turns([key_of("a")])
    assert next(turns) == [key_of("a")]
    assert sound.holding
    turns.close()
    assert not sound.holding


def test_an_interrupt_while_claiming_leaves_nothing_claimed(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(Held):
        def acquire(self) -> Holder | None:
            raise KeyboardInterrupt

    first, second = Held(), Interrupted()
    first.free = True
    flight = SingleFlight(lambda _: [first, second], lambda _: None, lambda *_: False)
    with pytest.raises(KeyboardInterrupt):
        next(flight.turns([key_of("a")]))
    assert not first.holding
    assert flight._table.holder(key_of("a").digest) is None


def test_who_gives_up_waiting_takes_nothing_from_the_thread_that_builds() -> None:
    flight = SingleFlight(lambda _: [], lambda _: None, lambda *_: False)
    building = flight.turns([key_of("a")])
    next(building)
    results = at_once(lambda: flight._flight(key_of("a")).release() or flight._flight(key_of("a")).acquire())  # type: ignore[func-returns-value]
    assert isinstance(results[0], Holder)
    building.close()
    assert at_once(lambda: flight._flight(key_of("a")).acquire()) == [None]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_forked_while_a_thread_builds_waits_for_it_or_builds_itself(cache: Cache) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def build() -> Artifact:
        begun.set()
        go_on.wait(20)
        return Artifact(b"of the parent")

    thread = threading.Thread(target=lambda: cache.get_or_build(key_of("a"), build, bytes))
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own = cache.get_or_build(key_of("b"), lambda: Artifact(b"of the child"), bytes).value
            waited = cache.get_or_build(key_of("a"), lambda: Artifact(b"of the child"), bytes).value
            code = 0 if (own, waited) == (b"of the child", b"of the parent") else 2
        finally:
            os._exit(code)
    time.sleep(0.3)
    go_on.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_builder_that_forks_keeps_its_claim_when_its_child_is_done(cache: Cache) -> None:
    """The child goes on from within the build, as a copy of it, and ends it as its own."""
    parent = os.getpid()
    ended: list[int] = []

    def build() -> Artifact:
        child = os.fork()
        if child == 0:
            return Artifact(b"built")
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        assert node_lock(cache, key_of("a")).acquire() is not None
        return Artifact(b"built")

    try:
        value = cache.get_or_build(key_of("a"), build, bytes).value
    finally:
        if os.getpid() != parent:
            os._exit(0)
    assert (value, ended) == (b"built", [0])
