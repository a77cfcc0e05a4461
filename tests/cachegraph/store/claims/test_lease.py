"""Leases: one holder, judged by the clock of the waiting process; dead ones are succeeded."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cachegraph.processes import machine, start_of
from cachegraph.store.claims import lease as lease_module
from cachegraph.store.claims.directory_lease_files import DirectoryLeaseFiles
from cachegraph.store.claims.lease import TTL, Host
from cachegraph.store.protocol import Holder
from cachegraph.store.trust import Guard, Trust

ELSEWHERE = Host("n2", "n2 of another boot")


class Clock:
    """A clock that moves only when a test advances it; each host has its own."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def Lease(path: Path, **keywords: Any) -> lease_module.Lease:
    guard = Guard(path.parents[3], Trust.of("private"))
    return lease_module.Lease(DirectoryLeaseFiles(path, guard), **keywords)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "l" / "ab" / "abcd"


@pytest.fixture(autouse=True)
def own_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test its own thread that beats."""
    monkeypatch.setattr(lease_module, "_current", None)


@pytest.fixture
def nobody_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let leases beat only when the test says so."""
    monkeypatch.setattr(lease_module._Pulse, "_run", lambda self: None)


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


def write_lease(path: Path, **said: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    here = {"host": "n1", "machine": machine(), "pid": os.getpid(), "start": start_of(os.getpid())}
    path.with_name(f"{path.name}.1").write_text(json.dumps({**here, "since": 0.0, "beat": "1", **said}))


def test_a_lease_that_nobody_wrote_is_succeeded_unread(path: Path) -> None:
    write_lease(path)
    os.truncate(path.with_name("abcd.1"), 2**40)
    waiting = Lease(path, host=ELSEWHERE)
    assert waiting.acquire() is None
    waiting.release()
    write_lease(path)
    os.chmod(path.with_name("abcd.1"), 0o666)
    assert waiting.acquire() is None
    waiting.release()


def test_the_first_has_it_and_the_second_is_told_who_that_is(path: Path) -> None:
    first, second = Lease(path, host=Host("n1", "n1 boot")), Lease(path, host=ELSEWHERE)
    assert first.acquire() is None
    holder = second.acquire()
    assert holder is not None
    assert (holder.host, holder.pid) == ("n1", os.getpid())
    assert abs(holder.since - time.time()) < 60
    first.release()
    assert second.acquire() is None
    second.release()
    assert names(path) == []


def test_making_a_lease_touches_nothing_and_releasing_one_not_held_neither(path: Path) -> None:
    Lease(path).release()
    assert not path.parent.exists()


def test_a_lease_is_alive_while_it_beats_whatever_the_clocks_of_two_hosts_say(
    path: Path, nobody_beats: None
) -> None:
    there, here = Clock(1e9), Clock(5.0)
    holder = Lease(path, clock=there, host=Host("n1", "n1 boot"))
    waiting = Lease(path, clock=here, host=ELSEWHERE)
    assert holder.acquire() is None
    for _ in range(10):
        assert waiting.acquire() is not None
        here.now += 0.9 * TTL
        holder.beat()
    for file in path.parent.iterdir():  # times of files decide nothing
        os.utime(file, (0, 0))
    assert waiting.acquire() is not None
    holder.release()


def test_a_lease_that_stands_still_for_a_ttl_is_replaced_and_what_is_left_blocks_nobody(
    path: Path, nobody_beats: None
) -> None:
    clock = Clock(5.0)
    dead = Lease(path, host=Host("n1", "n1 boot"))
    assert dead.acquire() is None
    waiting, third = (Lease(path, clock=clock, host=ELSEWHERE) for _ in range(2))
    assert waiting.acquire() is not None
    clock.now += 1.01 * TTL
    assert third.acquire() is not None  # it has only begun to observe the holder
    assert waiting.acquire() is None
    assert names(path) == ["abcd.1", "abcd.2"]
    assert third.acquire() == Holder("n2", os.getpid(), waiting._held._document["since"])
    waiting.release()
    assert names(path) == []
    assert third.acquire() is None
    third.release()


def test_of_two_who_replace_a_dead_holder_one_does(path: Path, nobody_beats: None) -> None:
    clock = Clock(0.0)
    Lease(path, host=Host("n1", "n1 boot")).acquire()
    waiting = [Lease(path, clock=clock, host=ELSEWHERE) for _ in range(8)]
    assert all(lease.acquire() is not None for lease in waiting)
    clock.now += 2 * TTL
    ready = threading.Barrier(8)
    winners: list[lease_module.Lease] = []

    def replace(lease: lease_module.Lease) -> None:
        ready.wait()
        if lease.acquire() is None:
            winners.append(lease)

    threads = [threading.Thread(target=replace, args=(lease,)) for lease in waiting]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    winners[0].release()


def test_a_process_of_this_machine_that_is_gone_is_replaced_at_once(path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_lease(path, pid=ended.pid, start="1")
    waiting = Lease(path)
    assert waiting.acquire() is None
    waiting.release()


def test_a_number_that_another_process_has_now_is_no_sign_of_life(path: Path) -> None:
    if not start_of(os.getpid()):
        pytest.skip("the system does not say when a process began")
    write_lease(path, start="1")
    waiting = Lease(path)
    assert waiting.acquire() is None
    waiting.release()


def test_a_process_of_another_machine_is_not_judged_by_its_number(path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_lease(path, pid=ended.pid, machine="another")
    assert Lease(path).acquire() == Holder("n1", ended.pid, 0.0)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"host": 1}', json.dumps({"machine": machine(), "pid": "x", "start": ""})],
)
def test_a_lease_that_says_nothing_is_judged_by_time_alone(path: Path, content: str) -> None:
    write_lease(path)
    path.with_name("abcd.1").write_text(content)
    clock = Clock(0.0)
    waiting = Lease(path, clock=clock)
    assert waiting.acquire() == Holder()
    clock.now += 2 * TTL
    assert waiting.acquire() is None
    waiting.release()


def test_what_a_lease_says_of_its_holder_cannot_garble_a_log(path: Path) -> None:
    write_lease(path, machine="another", host="n1\nERROR\x1b[2J" + "x" * 1000, since=1e300)
    holder = Lease(path).acquire()
    assert holder is not None
    assert str(holder).isprintable()
    assert len(str(holder)) < 200


def test_the_holder_beats_by_itself_and_stops_when_it_has_nothing_left(path: Path) -> None:
    lease = Lease(path, ttl=0.05)
    assert lease.acquire() is None
    first = path.with_name("abcd.1").read_bytes()
    end = time.monotonic() + 10
    while path.with_name("abcd.1").read_bytes() == first:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert len(path.with_name("abcd.1").read_bytes()) == len(first)
    lease.release()
    while any(thread.name == "cachegraph-leases" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_lease_that_was_cleared_away_under_its_holder_is_let_go(path: Path) -> None:
    lease, other = Lease(path), Lease(path, host=ELSEWHERE)
    assert lease.acquire() is None
    path.with_name("abcd.1").unlink()
    lease.beat()
    assert names(path) == []
    assert other.acquire() is None
    lease.release()
    other.release()


def test_a_lease_that_cannot_be_written_is_not_left_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(lease_module.os, "write", full)
    with pytest.raises(OSError, match="no room"):
        Lease(path).acquire()
    assert names(path) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("code", [errno.ENOENT, errno.EACCES, errno.ESTALE])
def test_a_lease_whose_directory_cannot_be_made_is_no_lease_of_others(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OSError, match=os.strerror(code)):
        Lease(path).acquire()


def test_a_forked_child_gives_back_nothing_of_its_parent(path: Path) -> None:
    lease = Lease(path)
    assert lease.acquire() is None
    child = os.fork()
    if child == 0:
        lease.release()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert names(path) == ["abcd.1"]
    assert Lease(path, host=ELSEWHERE).acquire() is not None
    lease.release()


Start = Callable[..., "subprocess.Popen[str]"]


def test_a_killed_holder_is_replaced_at_once_on_its_machine_and_after_a_ttl_elsewhere(
    path: Path, start_python: Start
) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from cachegraph.store.claims.directory_lease_files import DirectoryLeaseFiles\n"
        "from cachegraph.store.claims.lease import Lease; from cachegraph.store.trust import Guard, Trust\n"
        "path = Path(sys.argv[1]); guard = Guard(path.parents[3], Trust.of('private'))\n"
        "lease = Lease(DirectoryLeaseFiles(path, guard), ttl=0.5); assert lease.acquire() is None\n"
        "print('held', flush=True); time.sleep(60)"
    )
    process = start_python(program, path)
    assert process.stdout is not None
    process.stdout.readline()
    here, there = Lease(path, ttl=0.5), Lease(path, ttl=0.5, host=ELSEWHERE)
    time.sleep(0.7)
    assert here.acquire() is not None  # the holder beats
    assert there.acquire() is not None
    process.kill()
    process.communicate()
    begin = time.monotonic()
    assert there.acquire() is not None
    while there.acquire() is not None:
        assert time.monotonic() < begin + 10
        time.sleep(0.02)
    assert time.monotonic() > begin + 0.2
    there.release()
    write_lease(path, pid=process.pid, start="0")
    assert here.acquire() is None
    here.release()


def test_a_lease_that_is_listed_and_not_there_was_given_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(lease_module.os, "listdir", lambda _: ["abcd.7", "abcd.x", "other.9"])
    lease = Lease(path)
    assert lease.acquire() is None
    monkeypatch.undo()
    assert names(path) == ["abcd.8"]
    lease.release()


def test_a_client_that_goes_on_showing_a_generation_that_was_given_back_keeps_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that reports the file as present when it is created, and as missing when it is read."""
    real = os.open

    def stale(file: Any, flags: int, *mode: int) -> int:
        if flags & os.O_EXCL and str(file).endswith((".1", ".2")):
            raise FileExistsError(errno.EEXIST, "shown from memory", str(file))
        return real(file, flags, *mode)

    monkeypatch.setattr(lease_module.os, "open", stale)
    lease = Lease(path)
    assert lease.acquire() is None
    assert names(path) == ["abcd.3"]
    write_lease(path)
    lease.release()
    assert names(path) == []


def test_who_loses_the_race_for_a_generation_is_told_who_won(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner = Lease(path, host=Host("n1", "n1 boot"))
    assert winner.acquire() is None
    monkeypatch.setattr(lease_module.os, "listdir", lambda _: [])
    holder = Lease(path, host=ELSEWHERE).acquire()
    assert holder is not None
    assert (holder.host, holder.pid) == ("n1", os.getpid())
    monkeypatch.undo()
    winner.release()


class Stalled(DirectoryLeaseFiles):
    """The files of a process that stands still before its first call of a kind, while something happens."""

    def __init__(self, files: DirectoryLeaseFiles, **meanwhile: Callable[[], None]) -> None:
        super().__init__(files._path, files._guard)
        self._meanwhile = meanwhile

    def read(self, end: str) -> bytes:
        self._stall("read")
        return super().read(end)

    def create(self, end: str, content: bytes) -> bool:
        self._stall("create")
        return super().create(end, content)

    def _stall(self, call: str) -> None:
        if call in self._meanwhile:
            self._meanwhile.pop(call)()


def test_a_lease_that_was_released_since_it_was_listed_is_not_succeeded(
    path: Path, nobody_beats: None
) -> None:
    first, second = Lease(path), Lease(path, host=ELSEWHERE)
    assert first.acquire() is None

    def begin_anew() -> None:
        assert second.acquire() is None

    late = Lease(path, host=Host("n3", "n3 boot"))
    late._files = Stalled(late._files, read=first.release, create=begin_anew)
    holder = late.acquire()
    assert holder is not None
    assert holder.host == "n2"
    assert names(path) == ["abcd.1"]
    second.release()


def test_who_succeeds_a_dead_lease_gives_up_if_others_have_begun_anew_meanwhile(
    path: Path, nobody_beats: None
) -> None:
    clock = Clock(0.0)
    assert Lease(path, host=Host("n0", "n0 boot")).acquire() is None  # and is dead
    late, first, second = (Lease(path, clock=clock, host=Host(f"n{n}", f"n{n} boot")) for n in (1, 2, 3))
    assert late.acquire() is not None
    assert first.acquire() is not None
    clock.now += 2 * TTL

    def succeed_and_begin_anew() -> None:
        assert first.acquire() is None
        assert names(path) == ["abcd.1", "abcd.2"]
        first.release()
        assert second.acquire() is None
        assert names(path) == ["abcd.1"]

    late._files = Stalled(late._files, create=succeed_and_begin_anew)
    holder = late.acquire()
    assert holder is not None
    assert holder.host == "n3"
    assert names(path) == ["abcd.1"]
    second.release()


def test_a_beat_does_not_create_a_removed_lease_again(path: Path, nobody_beats: None) -> None:
    """The files of a server, which are read and then written, and a release between the two."""
    lease = Lease(path)
    assert lease.acquire() is None
    held, replaced = lease._held, DirectoryLeaseFiles.replace
    released = threading.Thread(target=lease.release)

    class Slow(DirectoryLeaseFiles):
        def replace(self, end: str, content: bytes) -> None:
            released.start()
            released.join(0.2)
            replaced(self, end, content)

    assert held is not None
    held._files = Slow(lease._files._path, lease._files._guard)
    lease.beat()
    released.join()
    held.beat()
    assert names(path) == []
