"""Several processes on one directory: none fails, nothing is lost, killed ones leave nothing wrong behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.statistics import totals
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.verification import verify

Key = Callable[..., CacheKey]
Run = Callable[..., str]
Start = Callable[..., "subprocess.Popen[str]"]

PRELUDE = """
import sys
from pathlib import Path
from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.key import CacheKey
from cachegraph.settings import Settings

def key_of(text):
    return CacheKey.build("kernel", {"scheme": b"test", "graph": str(text).encode()})

def payload_of(text, size):
    return (str(text).encode() + b" ") * (size // (len(str(text)) + 1))

cache = Cache(Settings(Path(sys.argv[1]), "readwrite", "compile"))
"""

PUT = (
    PRELUDE
    + "assert cache.store(key_of('a'), Artifact(b'from another process', {'graph': b'g'}, {'compile': 2.0}))"
)

GET = (
    PRELUDE
    + """
found = cache.lookup(key_of('a'))
assert isinstance(found, Hit), found
print(found.payload, sorted(set(sys.modules) & {"sqlalchemy", "click", "rich", "numba", "scipy", "logging", "json"}))
"""
)

PUT_MANY = (
    PRELUDE
    + """
import time
while time.time() < float(sys.argv[3]):
    pass
for i in range(5):
    text = f"{sys.argv[2]} {i}"
    assert cache.store(key_of(text), Artifact(payload_of(text, 20_000), {}, {"compile": 1.0})), text
    assert isinstance(cache.lookup(key_of(text)), Hit), text
"""
)

PUT_FOR_EVER = (
    PRELUDE
    + """
import itertools
cache = Cache(Settings(Path(sys.argv[1]), "readwrite", "compile", max_size=int(sys.argv[2])))
for i in itertools.count():
    size = (100, 20_000, 100_000)[i % 3]
    assert cache.store(key_of(i % 200), Artifact(payload_of(i % 200, size), {"graph": payload_of(i, 500)}))
    print(i % 200, size, flush=True)
"""
)


def payload_of(text: object, size: int) -> bytes:
    return (str(text).encode() + b" ") * (size // (len(str(text)) + 1))


def test_what_one_process_puts_another_gets_without_heavy_imports(
    run_python: Run, cache_directory: Path
) -> None:
    run_python(PUT, cache_directory)
    assert run_python(GET, cache_directory).strip() == "b'from another process' []"


def test_what_is_put_and_evicts_is_written_without_sqlalchemy(run_python: Run, cache_directory: Path) -> None:
    program = (
        PRELUDE
        + "cache = Cache(Settings(Path(sys.argv[1]), 'readwrite', 'compile', max_size=200_000))\n"
        + "for i in range(9): assert cache.store(key_of(i), Artifact(payload_of(i, 50_000)))\n"
        + "print(isinstance(cache.lookup(key_of(8)), Hit), cache.lookup(key_of(0)).reason, 'sqlalchemy' in sys.modules)"
    )
    assert run_python(program, cache_directory).strip() == "True evicted False"


def test_the_end_of_a_warm_process_counts_its_uses_without_heavy_imports(
    run_python: Run, cache_directory: Path
) -> None:
    run_python(PUT, cache_directory)
    at_exit = "import atexit; atexit.register(lambda: print('sqlalchemy' in sys.modules))\n"
    assert run_python("import sys\n" + at_exit + GET, cache_directory).split()[-1] == "False"
    store = LocalStore(cache_directory)
    assert [entry.uses for entry in store.scan()] == [1]
    assert totals(store.database).levels["kernel"].hits == 1
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("round", range(3))
def test_eight_processes_open_one_fresh_directory_at_once(
    round: int, start_python: Start, cache_directory: Path, key: Key
) -> None:
    begin = time.time() + 1.0
    processes = [start_python(PUT_MANY, cache_directory, number, begin) for number in range(8)]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, errors
    assert "".join(errors) == ""
    store = LocalStore(cache_directory)
    assert len(store.scan()) == 40
    for number in range(8):
        for i in range(5):
            found = store.get(key(f"{number} {i}"))
            assert isinstance(found, Hit)
            assert found.payload == payload_of(f"{number} {i}", 20_000)
    assert totals(store.database).levels["kernel"].hits > 0
    store.close()


GET_AND_PUT = (
    PRELUDE
    + """
import random
choose = random.Random(int(sys.argv[2]))
sizes = (200, 20_000, 120_000)
for call in range(int(sys.argv[3])):
    number = choose.randrange(60)
    due = payload_of(number, sizes[number % 3])
    if choose.random() < 0.3:
        assert cache.store(key_of(number), Artifact(due, {"graph": due[:300]}, {"compile": 1.0})), number
    found = cache.lookup(key_of(number))
    assert isinstance(found, Hit) or found.reason == "never-seen", found
    if isinstance(found, Hit):
        assert found.payload == due
        assert cache.read_blob(found.blobs["graph"]) == due[:300]
    if call % 50 == 0:
        cache.flush()
"""
)


@pytest.mark.stress
def test_sixteen_processes_get_and_put_without_an_error(start_python: Start, store: LocalStore) -> None:
    calls = 5000 if os.environ.get("CACHEGRAPH_STRESS") == "full" else 100
    processes = [start_python(GET_AND_PUT, store.layout.directory, n, calls) for n in range(16)]
    outputs = [process.communicate(timeout=600) for process in processes]
    assert [errors for _, errors in outputs if errors] == []
    assert [process.returncode for process in processes] == [0] * 16
    assert 40 < len(store.scan()) <= 60
    assert verify(store) == []


def acknowledged(lines: str) -> set[int]:
    """Return the numbers that the killed writer reported as stored."""
    return {int(line.split()[0]) for line in lines.splitlines()}


def kill_writers(kills: int, start: Start, directory: Path, key: Key, max_size: int = 0) -> None:
    """Each entry that a killed writer reported is read back right; with a limit it may be evicted."""
    choose = random.Random(4)
    stored: set[int] = set()
    evicted = 0
    for _ in range(kills):
        process = start(PUT_FOR_EVER, directory, max_size)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(9)]  # until it writes, and evicts if it has a limit
        time.sleep(choose.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        stored |= acknowledged("".join(lines) + process.stdout.read())
        process.wait()
        cache = Cache(Settings(directory, "readwrite", "compile", max_size=max_size))
        for number in stored:
            found = cache.lookup(key(number))
            if max_size and isinstance(found, Miss):
                assert found.reason == "evicted", (number, found)
                evicted += 1
                continue
            assert isinstance(found, Hit), (number, found)
            assert found.payload in [payload_of(number, size) for size in (100, 20_000, 100_000)]
            assert cache.read_blob(found.blobs["graph"]) is not None
        assert cache.store(key("alive"), Artifact(b"alive"))
        cache.flush()
        cache._store.close()
    assert (evicted > 0) == (max_size > 0)


EVICTING = 300_000
"""Bytes; less than the total that the writer writes."""


@pytest.mark.parametrize("max_size", [0, EVICTING], ids=["no limit", "evicting"])
def test_killed_writers_lose_nothing_they_acknowledged(
    max_size: int, start_python: Start, cache_directory: Path, key: Key
) -> None:
    """tools/stress/kill.py kills more writers, with more kinds of work."""
    kill_writers(6, start_python, cache_directory, key, max_size)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def in_child(work: Callable[[], bool]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return child


def ended_well(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@needs_fork
def test_a_forked_child_uses_connections_of_its_own(store: LocalStore, key: Key) -> None:
    store.put(key("before"), Artifact(b"before"))
    assert isinstance(store.get(key("before")), Hit)

    def work(name: str) -> bool:
        store.put(key(name), Artifact(name.encode()))
        return store.get(key(name)) == Hit(name.encode(), {}, {}) == store.get(key(name))

    children = [in_child(lambda name=name: work(name)) for name in ("one", "two", "three")]  # type: ignore[misc]
    assert work("parent")
    ended = [ended_well(child) for child in children]
    assert all(ended)
    assert {entry.payload_size for entry in store.scan()} == {3, 5, 6}
    assert isinstance(store.get(key("three")), Hit)


@needs_fork
def test_no_connection_is_open_while_a_fork_happens(store: LocalStore, key: Key) -> None:
    store.put(key("a"), Artifact(b"a"))
    assert isinstance(store.get(key("a")), Hit)
    assert index_is_open(store)
    assert ended_well(in_child(lambda: not index_is_open(store)))
    assert isinstance(store.get(key("a")), Hit)


def index_is_open(store: LocalStore) -> bool:
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("there is no /proc here")
    return any(os.path.realpath(path) == str(store.layout.index.resolve()) for path in descriptors.iterdir())


@needs_fork
def test_forking_while_threads_read_and_write(store: LocalStore, key: Key) -> None:
    import threading

    store.put(key("a"), Artifact(b"a"))
    stop = threading.Event()
    wrong: list[Hit | Miss] = []

    def read() -> None:
        while not stop.is_set():
            found = store.get(key("a"))
            if not isinstance(found, Hit):
                wrong.append(found)

    def write() -> None:
        while not stop.is_set():
            store.put(key("b"), Artifact(b"b"))

    threads = [threading.Thread(target=work) for work in (read, read, write)]
    for thread in threads:
        thread.start()
    children = [in_child(lambda: isinstance(store.get(key("a")), Hit)) for _ in range(10)]
    fine = [ended_well(child) for child in children]
    stop.set()
    for thread in threads:
        thread.join()
    assert all(fine)
    assert wrong == []


@needs_fork
def test_a_child_that_outlives_its_parent_loses_nothing(store: LocalStore, key: Key, run_python: Run) -> None:
    """The locks of the parent end with it; if the child had none, its write-ahead log would be deleted."""
    program = PRELUDE + (
        "import os, time\n"
        "cache.store(key_of('parent'), Artifact(b'parent'))\n"
        "cache.lookup(key_of('parent'))\n"
        "if os.fork(): os._exit(0)\n"
        "cache.lookup(key_of('parent'))\n"
        "for i in range(20):\n"
        "    assert cache.store(key_of(i), Artifact(b'child'))\n"
        "    time.sleep(0.02)\n"
        "print('done')\n"
    )
    assert run_python(program, store.layout.directory).strip() == "done"  # the pipe ends when the child does
    assert all(isinstance(store.get(key(i)), Hit) for i in range(20))
