"""A forked child finds every lock free, whatever other threads were doing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cachegraph import forking
from cachegraph.cache import Artifact, Cache
from cachegraph.forking import PausableLock, Rank, momentary_lock, pause_at_forks
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.entry import Hit
from cachegraph.store.local.database import MOST_IDLE
from cachegraph.store.local.store import LocalStore

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def in_child(what: Callable[[], bool]) -> bool:
    """Return what `what` returns in a forked child; False if that takes half a minute."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            threading.Thread(target=lambda: (time.sleep(30), os._exit(2)), daemon=True).start()
            code = 0 if what() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@contextmanager
def held_elsewhere(lock: threading.RLock, seconds: float = 60.0) -> Iterator[None]:
    """Have another thread hold `lock` for so long, or until the end."""
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holding.set()
            done.wait(seconds)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_child_finds_a_momentary_lock_free_that_another_thread_held() -> None:
    lock = momentary_lock()
    with held_elsewhere(lock):
        assert in_child(lambda: lock.acquire(timeout=1))
        assert not lock.acquire(timeout=0.01)


def test_a_fork_waits_for_work_to_end_and_parent_and_child_go_on_with_it() -> None:
    lock = threading.RLock()
    pausable = PausableLock(lock)
    pause_at_forks(pausable, Rank.COMPILER)
    with held_elsewhere(lock, 0.3):
        begin = time.monotonic()
        assert in_child(lambda: lock.acquire(timeout=1))
        assert time.monotonic() - begin > 0.2
        assert lock.acquire(timeout=1)
        lock.release()


def test_a_fork_does_not_wait_for_ever_and_its_child_finds_the_lock_free_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forking, "PATIENCE", 0.2)
    lock = threading.RLock()
    pausable = PausableLock(lock)
    pause_at_forks(pausable, Rank.LINKER)
    with held_elsewhere(lock):
        assert in_child(lambda: lock.acquire(timeout=1))
        assert not lock.acquire(timeout=0.01)


def test_a_thread_that_holds_what_is_paused_may_fork_itself() -> None:
    lock = threading.RLock()
    pausable = PausableLock(lock)
    pause_at_forks(pausable, Rank.INDEX)
    with lock:
        assert in_child(lambda: lock.acquire(timeout=1))


def test_a_child_can_import_what_another_thread_was_importing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text("import time; time.sleep(0.5); whole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(forking, "_GUARDED_PACKAGES", {"slow_to_import"})
    momentary_lock()  # has forks guarded
    thread = threading.Thread(target=lambda: __import__("slow_to_import"))
    thread.start()
    while "slow_to_import" not in sys.modules:
        time.sleep(0.001)
    assert in_child(lambda: __import__("slow_to_import").whole)
    thread.join()


def test_a_child_imports_anew_what_its_parent_was_importing_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slower_to_import.py").write_text(
        "import os, time; os.getpid() == parent and time.sleep(2); whole = True\n".replace(
            "parent", str(os.getpid())
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(forking, "_GUARDED_PACKAGES", {"slower_to_import"})
    monkeypatch.setattr(forking, "PATIENCE", 0.1)
    momentary_lock()
    thread = threading.Thread(target=lambda: __import__("slower_to_import"))
    thread.start()
    while "slower_to_import" not in sys.modules:
        time.sleep(0.001)
    assert in_child(lambda: __import__("slower_to_import").whole)
    assert not hasattr(sys.modules["slower_to_import"], "whole")
    thread.join()
    assert sys.modules["slower_to_import"].whole


def test_a_module_that_forks_while_it_is_imported_does_not_wait_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "forks_at_import.py").write_text(
        "import os, threading, time\n"
        "other = threading.Thread(target=time.sleep, args=(1.0,)); other.start()\n"
        "begin = time.monotonic(); child = os.fork()\n"
        "if child == 0: os._exit(0)\n"
        "took = time.monotonic() - begin; os.waitpid(child, 0); other.join()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(forking, "_GUARDED_PACKAGES", {"forks_at_import"})
    momentary_lock()
    assert __import__("forks_at_import").took < 0.5 * forking.PATIENCE


def test_children_forked_while_threads_use_a_cache_use_it_too(tmp_path: Path) -> None:
    cache = Cache(Settings(tmp_path / "local", "readwrite", "compile", tmp_path / "shared"))
    done = threading.Event()

    def use(name: str) -> None:
        for number in range(10_000):
            build(f"{name} {number % 50}")
            if done.is_set():
                return

    def build(text: str) -> bytes:
        key = CacheKey.build("kernel", {"graph": text.encode()})
        return cache.get_or_build(key, lambda: Artifact(text.encode()), bytes).value

    threads = [threading.Thread(target=use, args=(f"thread {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(15):
            text = f"child {number}"
            assert in_child(lambda text=text: build(text) == text.encode())  # type: ignore[misc]
    finally:
        done.set()
        for thread in threads:
            thread.join()


LATE_HANDLERS = """
import os, sys
from cachegraph.forking import Rank, pause_at_forks

class Importing:
    def pause(self, seconds):
        import concurrent.futures.thread, logging

    def resume(self, in_child):
        pass

work = Importing()
pause_at_forks(work, Rank.INDEX)
assert "logging" not in sys.modules
child = os.fork()
import concurrent.futures.thread, logging
for lock in (logging._lock, concurrent.futures.thread._global_shutdown_lock):
    assert lock.acquire(timeout=5)
    lock.release()
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.fork() or os._exit(0)
"""


def test_modules_with_handlers_that_are_imported_while_a_fork_waits_keep_their_locks_in_order() -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LATE_HANDLERS], capture_output=True, text=True
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_threads_that_come_and_go_leave_no_descriptor_open(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    key = CacheKey.build("kernel", {"graph": b"one"})
    store.put(key, Artifact(b"payload"))
    found: list[object] = []

    def use(threads: int) -> int:
        for _ in range(threads):
            thread = threading.Thread(target=lambda: found.append(store.get(key)))
            thread.start()
            thread.join()
        return len(os.listdir("/proc/self/fd"))

    assert use(5) == use(50)
    assert all(isinstance(hit, Hit) for hit in found)
    store.close()


def descriptors_below(directory: Path) -> list[str]:
    """Return the files of a directory that this process has open, each as often as it is."""
    opened = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            opened.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return [path for path in opened if path.startswith(str(directory))]


def test_of_many_threads_that_read_at_once_few_connections_stay(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    key = CacheKey.build("kernel", {"graph": b"one"})
    store.put(key, Artifact(b"payload"))
    together = threading.Barrier(20)

    def use() -> None:
        together.wait()
        for _ in range(20):
            store.get(key)

    threads = [threading.Thread(target=use) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # SQLite keeps descriptors of the index itself for the next connection, while this process has locks on it.
    logs = [path for path in descriptors_below(tmp_path) if path.endswith("-wal")]
    assert 0 < len(logs) <= MOST_IDLE + 1, "the one that writes is another"
    store.close()
