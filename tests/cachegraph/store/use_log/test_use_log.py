"""Use logs: what processes append is summed up; what is damaged or torn is lost, and no error."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegraph.cache import Artifact, Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.activity import Activity, Batch
from cachegraph.store.entry import Miss
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.trust import Guard, Trust
from cachegraph.store.use_log.blocks import MOST_ROWS, encode_block, read_blocks
from cachegraph.store.use_log.reading import references, sum_up
from cachegraph.store.use_log.writing import LARGEST_FILE, LARGEST_LOG, REPORT_SECONDS, UseLog, node_log

Key = Callable[..., CacheKey]
NOW = 1_800_000_000.0


def batch(*keys: CacheKey, missed: CacheKey | None = None) -> Batch:
    activity = Activity()
    for key in keys:
        activity.use(key.digest, None)
        activity.hit(key.level, 2.0)
    if missed is not None:
        activity.miss(missed, Miss("never-seen", "nobody built it"), 3.0)
    return activity.take()


@pytest.fixture
def log(tmp_path: Path) -> UseLog:
    return UseLog(tmp_path / "v1" / "uses", Guard(tmp_path, Trust.of("private")))


def test_logs_of_several_processes_are_summed_up(key: Key) -> None:
    a, b = key("a"), key("b")
    logs = [
        encode_block(batch(a, a, b), NOW) + encode_block(batch(a), NOW + 1),
        encode_block(batch(missed=b), NOW),
    ]
    found = sum_up(logs, time.time())
    assert {digest: use.uses for digest, use in found.keys.items()} == {a.digest: 3, b.digest: 1}
    assert all(abs(use.last_used - time.time()) < 60 for use in found.keys.values())
    day = int(min(NOW, time.time()) // 86400)
    assert found.totals == {
        (day, "kernel", "hit", ""): (4, 8.0),
        (day, "kernel", "miss", "never-seen"): (1, 3.0),
    }
    assert references(logs)[-1] == a.digest
    assert len(references(logs)) == 4


def test_a_clock_that_is_ahead_keeps_no_entry_for_ever(key: Key) -> None:
    ahead = batch(key("a"))
    ahead.uses[key("a").digest].last_used = NOW * 2
    found = sum_up([encode_block(ahead, NOW * 2)], NOW)
    assert found.keys[key("a").digest].last_used == NOW
    assert {day for day, *_ in found.totals} == {int(NOW // 86400)}


def test_a_block_has_a_limit_and_keeps_the_last_used(key: Key) -> None:
    many = batch(*(key(n) for n in range(MOST_ROWS)))
    for use in many.uses.values():
        use.last_used = NOW
    last = batch(key("last"))
    [block] = read_blocks(encode_block(many._replace(uses={**last.uses, **many.uses})))
    assert len(block.keys) == MOST_ROWS
    assert len(block.content) < 64 * 1024


@given(st.data())
def test_damage_loses_blocks_and_nothing_else(data: st.DataObject) -> None:
    key = CacheKey.build("kernel", {"graph": b"g"})
    whole = encode_block(batch(key), NOW)
    log = bytearray(whole * 3)
    at, wrong = data.draw(st.integers(0, len(log) - 1)), data.draw(st.binary(min_size=1, max_size=40))
    log[at : at + data.draw(st.integers(0, 40))] = wrong
    found = list(read_blocks(bytes(log)))
    assert len(found) in (1, 2, 3)
    assert all(block.content == whole for block in found)


@pytest.mark.parametrize("content", [b"", b"CGU\1", b"CGU\1" * 100, b"CGU\1\xff\xff\xff\xff" + bytes(16)])
def test_what_is_no_log_holds_no_blocks(content: bytes) -> None:
    assert list(read_blocks(content)) == []


def test_a_log_does_not_grow_beyond_its_limit(log: UseLog, key: Key) -> None:
    block = encode_block(batch(*(key(n) for n in range(MOST_ROWS))))
    for _ in range(2 * LARGEST_FILE // len(block)):
        log.append(block)
    sizes = [path.stat().st_size for path in log.path.parent.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= LARGEST_LOG + len(block)
    assert len(list(read_blocks(log.content()))) == sum(sizes) // len(block)


def test_appends_of_many_processes_lose_nothing(log: UseLog, key: Key) -> None:
    children = []
    for n in range(8):
        child = os.fork()
        if child == 0:
            try:
                for m in range(20):
                    log.append(encode_block(batch(key((n, m)))))
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert len(references([log.content()])) == 160


def test_a_node_reports_once_for_all_of_its_processes(
    log: UseLog, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    for n in range(5):
        log.append(encode_block(batch(key(n))))
        log.report("s3://bucket", sent.append)
    assert len(references(sent)) == 1, "the first process reports, and those after it wait"
    log.report("redis://other", sent.append)
    assert len(references(sent)) == 6, "each remote has a time of its own"
    later = time.time() + REPORT_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    assert log.report("s3://bucket", sent.append)
    assert len(references(sent)) == 10
    assert not log.report("s3://bucket", sent.append)


def test_a_log_that_is_the_file_of_somebody_else_is_not_written(log: UseLog, tmp_path: Path) -> None:
    """In a directory of a group, each member can put a link to any file at any name."""
    thesis = tmp_path / "thesis"
    thesis.write_text("years")
    log.guard.make_directory(log.path.parent)
    for link in (os.link, os.symlink):
        link(thesis, log.path)
        with pytest.raises(OSError):
            log.append(b"block")
        log.path.unlink()
    assert thesis.read_text() == "years"


@pytest.fixture
def caches(tmp_path: Path) -> Callable[..., Cache]:
    """Return a function that opens the cache of a node, before one shared directory."""

    def opened(node: str, **given: object) -> Cache:
        where = Settings(tmp_path / node, "readwrite", "compile", tmp_path / "shared")
        return Cache(where._replace(**given))

    return opened


def uses(directory: Path) -> dict[bytes, int]:
    found = sum_up(SharedStore(directory, network=False).use_logs(), time.time())
    return {digest: use.uses for digest, use in found.keys.items()}


def test_a_hit_writes_nothing_and_the_end_of_a_process_one_file(
    caches: Callable[..., Cache], key: Key, tmp_path: Path
) -> None:
    first = caches("first")
    first.store(key("a"), Artifact(b"a"))
    assert uses(tmp_path / "shared") == {}
    second = caches("second")
    for _ in range(3):
        second.lookup(key("a"))
    assert uses(tmp_path / "shared") == {}
    second.flush()
    third = caches("second")
    third.lookup(key("a"))
    third.flush()
    assert uses(tmp_path / "shared") == {key("a").digest: 4}, "hits on the copy of a node count as well"
    assert len(list((tmp_path / "shared" / "v1" / "u").iterdir())) == 1


def test_who_only_reads_logs_nothing(caches: Callable[..., Cache], key: Key, tmp_path: Path) -> None:
    caches("first").store(key("a"), Artifact(b"a"))
    for reader in (caches("second", mode="readonly"), caches("third", trust="published:4711")):
        reader.lookup(key("a"))
        reader.flush()
    assert not (tmp_path / "shared" / "v1" / "u").exists()


@pytest.mark.parametrize("fault", ["a full disk", "a damaged log", "a directory in its place", "no folder"])
def test_a_fault_of_the_log_is_lost_usage(
    fault: str, caches: Callable[..., Cache], key: Key, tmp_path: Path
) -> None:
    cache = caches("first")
    cache.store(key("a"), Artifact(b"a"))
    shared = SharedStore(tmp_path / "shared", network=False)
    log = node_log(shared.layout.uses, shared.guard)
    if fault == "a damaged log":
        log.append(encode_block(batch(key("a")))[:-5])
    elif fault == "a directory in its place":
        log.path.mkdir(parents=True)
    elif fault == "no folder":
        shared.layout.uses.write_text("")
    cache.lookup(key("a"))
    with pytest.MonkeyPatch.context() as patch:
        if fault == "a full disk":
            patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "no space")))
        cache.flush()
    expected = {key("a").digest: 1} if fault == "a damaged log" else {}
    assert uses(tmp_path / "shared") == expected
    assert cache.lookup(key("a"))


def test_a_writer_that_is_killed_loses_its_own_uses(
    caches: Callable[..., Cache],
    key: Key,
    tmp_path: Path,
    start_python: Callable[..., subprocess.Popen[str]],
) -> None:
    cache = caches("first")
    cache.store(key("a"), Artifact(b"a"))
    cache.lookup(key("a"))
    cache.flush()
    shared = SharedStore(tmp_path / "shared", network=False)
    log = node_log(shared.layout.uses, shared.guard)
    program = (
        "import os, sys\n"
        "path, block = sys.argv[1], bytes.fromhex(sys.argv[2])\n"
        "for n in range(len(block)):\n"
        "    os.write(os.open(path, os.O_WRONLY | os.O_APPEND), block[:n])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    block = encode_block(batch(key("a")))
    writer = start_python(program, log.path, block.hex())
    assert writer.wait(60) == -9
    cache.lookup(key("a"))
    cache.flush()
    assert uses(tmp_path / "shared") == {key("a").digest: 2}
