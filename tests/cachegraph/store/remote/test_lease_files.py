"""Leases on servers: one builder among nodes that share nothing else, and none that is waited for in vain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from cachegraph.cache import Cache
from cachegraph.key import CacheKey
from cachegraph.remote_url import RemoteURL
from cachegraph.settings import Settings
from cachegraph.store.claims import lease as lease_module
from cachegraph.store.claims.lease import TTL, Host, Lease
from cachegraph.store.entry import Artifact
from cachegraph.store.paths import LEASES, lease_place
from cachegraph.store.protocol import Unkept
from cachegraph.store.remote import lease_files
from cachegraph.store.remote.files import RemoteError, RemoteFiles
from cachegraph.store.remote.lease_files import RemoteLeaseFiles
from cachegraph.store.remote.opening import open_files
from tests.cachegraph.store.remote.servers import SERVERS, Server, missing

Key = Callable[..., CacheKey]
OpenRemote = Callable[..., RemoteFiles]
KEY = "ab" * 16
HERE, ELSEWHERE = Host("n1", "n1 boot"), Host("n2", "n2 boot")


@pytest.fixture(autouse=True)
def own_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test its own thread that beats."""
    monkeypatch.setattr(lease_module, "_current", None)


def leases(files: RemoteFiles) -> list[str]:
    return sorted(file.name for file in files.listed(f"{LEASES}/"))


def test_one_node_has_the_lease_and_the_others_are_told_which(open_remote: OpenRemote) -> None:
    files = open_remote()
    several = [Lease(RemoteLeaseFiles(files, KEY), host=Host(f"n{n}", f"boot {n}")) for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        holders = list(pool.map(Lease.acquire, several))
    [first] = [n for n, holder in enumerate(holders) if holder is None]
    assert {lease.acquire().host for lease in several if lease is not several[first]} == {f"n{first}"}  # type: ignore[union-attr]
    for lease in several:
        lease.release()
    assert leases(files) == []


def test_only_the_existing_leases_of_the_key_are_listed(open_remote: OpenRemote) -> None:
    files = open_remote()
    of_key, of_another = RemoteLeaseFiles(files, KEY), RemoteLeaseFiles(files, "ab" * 15 + "ac")
    for end in ("1", "2", "unkept"):
        assert of_key.create(end, b"holder")
    assert of_another.create("1", b"holder")
    assert sorted(of_key.ends()) == ["1", "2", "unkept"]
    of_key.remove("1")
    files.write(f"{lease_place(KEY)}.3", b"beaten after it was removed")
    assert sorted(of_key.ends()) == ["2", "3", "unkept"]
    with pytest.raises(FileNotFoundError):
        of_key.remove("1")


def test_who_finds_too_many_leases_builds_for_himself(
    open_remote: OpenRemote, server: Server, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write to the server could keep every node listing for as long as he likes."""
    monkeypatch.setattr(lease_files, "MOST_LEASES", 3)
    of_key, builds = RemoteLeaseFiles(open_remote(), key("a").hex), Builds()
    builds.may_end.set()
    for end in range(1, 5):
        assert of_key.create(str(end), b"holder")
    with pytest.raises(RemoteError, match="more than 3 leases"):
        of_key.ends()
    assert get(node(tmp_path, server.url), key("a"), builds) == key("a").hex.encode()


def test_redis_lists_the_leases_of_a_key_without_a_walk_over_all_names() -> None:
    if missing("redis"):
        pytest.skip("redis is not installed")
    import redis

    with SERVERS["redis"]() as server, closing(open_files(RemoteURL.of(f"{server.url}?ttl=1h"))) as files:
        client = redis.Redis.from_url(server.url)
        lease = RemoteLeaseFiles(files, KEY)
        assert lease.create("1", b"holder")
        assert lease.create("2", b"holder")
        client.config_resetstat()
        assert sorted(lease.ends()) == ["1", "2"]
        assert "cmdstat_scan" not in client.info("commandstats")
        client.delete(f"cachegraph:{lease_place(KEY)}.1")  # as if its time were over
        assert list(lease.ends()) == ["2"]
        lease.remove("2")
        assert list(lease.ends()) == []
        assert 0 < client.ttl(f"cachegraph-leases:{lease_place(KEY)}") <= 3600


def test_a_holder_that_stands_still_is_succeeded_and_one_that_beats_is_not(
    open_remote: OpenRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module._Pulse, "_run", lambda self: None)
    files, now = open_remote(), [0.0]
    holder = Lease(RemoteLeaseFiles(files, KEY), host=HERE)
    waiting = Lease(RemoteLeaseFiles(files, KEY), clock=lambda: now[0], host=ELSEWHERE)
    assert holder.acquire() is None
    for _ in range(3):
        assert waiting.acquire() is not None
        now[0] += 0.9 * TTL
        holder.beat()
    assert waiting.acquire() is not None
    now[0] += 1.1 * TTL
    assert waiting.acquire() is None
    assert len(leases(files)) == 2
    waiting.release()
    holder.beat()
    holder.release()
    assert leases(files) == []


def test_nobody_waits_for_what_could_not_be_stored(open_remote: OpenRemote) -> None:
    files = open_remote()
    lease = Lease(RemoteLeaseFiles(files, KEY), host=HERE)
    lease.mark(True)
    with pytest.raises(Unkept, match=r"unkept"):
        lease.acquire()
    lease.mark(False)
    assert lease.acquire() is None
    lease.release()


def test_postgresql_tells_who_waits_and_others_let_him_sleep(open_remote: OpenRemote, server: Server) -> None:
    files = open_remote()
    holder = Lease(RemoteLeaseFiles(files, KEY), host=HERE)
    waiting = Lease(RemoteLeaseFiles(files, KEY), host=ELSEWHERE)
    assert holder.acquire() is None
    assert waiting.acquire() is not None
    tells = server.url.startswith("postgresql")
    releasing = threading.Timer(0.2, holder.release)
    releasing.start()
    begin = time.monotonic()
    waiting.wait(30.0 if tells else 0.3)
    assert time.monotonic() - begin < 10
    releasing.join()
    waiting.wait(0.0)
    assert waiting.acquire() is None
    waiting.release()


class Builds:
    """Counts what is built; a build waits until `may_end`."""

    def __init__(self) -> None:
        self.built: list[CacheKey] = []
        self.began, self.may_end = threading.Event(), threading.Event()

    def __call__(self, keys: Sequence[CacheKey]) -> list[Artifact]:
        self.built += keys
        self.began.set()
        assert self.may_end.wait(30)
        return [Artifact(key.hex.encode(), {}, {"compile": 1.0}) for key in keys]


def node(directory: Path, url: str) -> Cache:
    return Cache(Settings(directory, "readwrite", "compile", remotes=(RemoteURL.of(url),)))


def get(cache: Cache, key: CacheKey, builds: Builds) -> bytes:
    return cache.get_or_build_many([key], builds, lambda _, payload: payload)[key].value


def test_of_nodes_that_miss_a_key_at_once_one_builds(server: Server, key: Key, tmp_path: Path) -> None:
    builds = Builds()
    with ThreadPoolExecutor(4) as pool:
        got = [pool.submit(get, node(tmp_path / str(n), server.url), key("once"), builds) for n in range(4)]
        assert builds.began.wait(30)
        builds.may_end.set()
        assert {one.result(30) for one in got} == {key("once").hex.encode()}
    assert builds.built == [key("once")]


def test_what_a_build_asks_for_is_claimed_by_the_lease_of_the_build(
    server: Server, open_remote: OpenRemote, key: Key, tmp_path: Path
) -> None:
    files, claimed, inner = open_remote(), [], Builds()
    inner.may_end.set()
    asking = node(tmp_path / "1", server.url)

    def build(keys: Sequence[CacheKey]) -> list[Artifact]:
        assert get(asking, key("kernel"), inner) == key("kernel").hex.encode()
        claimed.extend(leases(files))
        return [Artifact(b"outer")]

    found = asking.get_or_build_many([key("function")], build, lambda _, payload: payload)
    assert found[key("function")].value == b"outer"
    assert [name.rpartition("/")[2] for name in claimed] == [f"{key('function').hex}.1"]
    assert get(node(tmp_path / "2", server.url), key("kernel"), Builds()) == key("kernel").hex.encode()
    assert leases(files) == []


def test_who_waits_builds_when_the_server_stops(server: Server, key: Key, tmp_path: Path) -> None:
    builds, own = Builds(), Builds()
    own.may_end.set()
    url = f"{server.url}?timeout=0.3"
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(get, node(tmp_path / "1", url), key("stop"), builds)
        assert builds.began.wait(30)
        second = pool.submit(get, node(tmp_path / "2", url), key("stop"), own)
        time.sleep(0.2)
        server.pause()
        try:
            assert second.result(20) == key("stop").hex.encode()
            builds.may_end.set()
            assert first.result(20) == key("stop").hex.encode()
        finally:
            server.resume()
    assert (builds.built, own.built) == ([key("stop")], [key("stop")])


def test_a_url_with_write_no_claims_nothing(server: Server, key: Key, tmp_path: Path) -> None:
    reader = node(tmp_path, f"{server.url}?write=no")
    assert len(reader._store.claims(key("a"))) == 1  # that of the node
