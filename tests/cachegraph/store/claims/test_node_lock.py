"""The lock of one node: one holder, released by the kernel, and no leftover file locks anything."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.processes import host_name
from cachegraph.store.claims import node_lock
from cachegraph.store.protocol import Holder
from cachegraph.store.trust import Guard, Trust

Start = Callable[..., "subprocess.Popen[str]"]

PRELUDE = (
    "import os, sys, time; from pathlib import Path\n"
    "from cachegraph.store.claims.node_lock import NodeLock; from cachegraph.store.trust import Guard, Trust\n"
    "path = Path(sys.argv[1]); guard = Guard(path.parents[2], Trust.of('private'))\n"
)
HOLD = PRELUDE + "lock = NodeLock(path, guard); print(lock.acquire(), flush=True); time.sleep(60)"


def NodeLock(path: Path) -> node_lock.NodeLock:
    return node_lock.NodeLock(path, Guard(path.parents[2], Trust.of("private")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "abcd.lock"


def test_the_second_is_told_who_has_it(path: Path) -> None:
    first, second = NodeLock(path), NodeLock(path)
    assert first.acquire() is None
    holder = second.acquire()
    assert holder is not None
    assert (holder.host, holder.pid) == (host_name(), os.getpid())
    assert abs(holder.since - time.time()) < 60
    assert str(holder).startswith(f"process {os.getpid()} on {host_name()}, since 20")
    second.release()
    assert second.acquire() is not None
    first.release()
    assert second.acquire() is None
    second.release()
    assert os.listdir(path.parent) == []


def test_a_killed_holder_has_it_no_more_and_its_file_locks_nobody(path: Path, start_python: Start) -> None:
    process = start_python(HOLD, path)
    assert process.stdout is not None
    assert process.stdout.readline() == "None\n"
    lock = NodeLock(path)
    holder = lock.acquire()
    assert holder is not None
    assert holder.pid == process.pid
    process.kill()
    process.communicate()
    assert path.exists()
    assert lock.acquire() is None
    assert json.loads(path.read_bytes())["pid"] == os.getpid()
    lock.release()
    assert not path.exists()


def test_a_lock_file_that_is_deleted_while_it_is_held_hurts_nobody(path: Path) -> None:
    first, second = NodeLock(path), NodeLock(path)
    assert first.acquire() is None
    path.unlink()
    assert second.acquire() is None
    first.release()
    second.release()
    assert NodeLock(path).acquire() is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"host": "", "pid": "x", "since": 0}', b"\xff"]
)
def test_a_holder_that_does_not_say_who_it_is_holds_all_the_same(path: Path, content: bytes) -> None:
    first = NodeLock(path)
    assert first.acquire() is None
    path.write_bytes(content)
    assert NodeLock(path).acquire() == Holder()
    first.release()


def test_a_link_where_the_lock_should_be_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("precious")
    path.symlink_to(precious)
    with pytest.raises(OSError, match=r"."):
        NodeLock(path).acquire()
    assert precious.read_text() == "precious"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_neither_holds_nor_gives_back_what_its_parent_holds(path: Path) -> None:
    lock = NodeLock(path)
    assert lock.acquire() is None
    child = os.fork()
    if child == 0:
        lock.release()
        os._exit(0 if NodeLock(path).acquire() is not None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert NodeLock(path).acquire() is not None
    lock.release()
    outlives = os.fork()
    if outlives == 0:
        time.sleep(5)
        os._exit(0)
    other = NodeLock(path)
    assert other.acquire() is None
    other.release()
    os.kill(outlives, 9)
    os.waitpid(outlives, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_outlives_a_killed_holder_does_not_keep_its_lock(
    path: Path, start_python: Start
) -> None:
    program = (
        PRELUDE + "lock = NodeLock(path, guard); lock.acquire()\n"
        "if os.fork() == 0: print(os.getpid(), flush=True); time.sleep(60); os._exit(0)\n"
        "time.sleep(60)"
    )
    process = start_python(program, path)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        process.kill()
        process.wait()
        assert NodeLock(path).acquire() is None
    finally:
        os.kill(child, 9)
        process.communicate()
