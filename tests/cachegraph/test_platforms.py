"""Systems without what Linux has: refused with a word that helps, or served without it.

macOS and Windows are simulated: their `sys.platform`, and the absence of the modules, functions and files that
they lack. That their own calls do what their manuals say is not tested.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cachegraph import platforms
from cachegraph.errors import UnsupportedPlatform
from cachegraph.store.filesystem import FileSystem, file_system

PROCESS = Path(__file__).with_name("another_system.py")
ROOT = PROCESS.parents[2]


def run(system: str, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROCESS, system, program, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


CACHED = """
import sys
from cachegraph import Cache, counters, memoize
cache = Cache(sys.argv[1], namespace="toyc")
for _ in range(2):
    found = cache.get_or_build({"source": "x"}, lambda: b"code", len)
cache.flush()
print(found.outcome, counters().store_failures)
"""


def test_on_macos_the_cache_stores_and_finds(tmp_path: Path) -> None:
    done = run("darwin", CACHED, tmp_path / "cache")
    assert done.stdout == "hit {}\n", done.stderr
    assert (tmp_path / "cache" / "v1" / "index.sqlite").exists()
    again = run("darwin", CACHED, tmp_path / "cache")
    assert again.stdout == "hit {}\n", again.stderr
    assert done.stderr == again.stderr == ""


def test_on_macos_processes_are_told_apart_by_psutil(tmp_path: Path) -> None:
    program = """
import os, subprocess, sys, time
from cachegraph.processes import began, is_gone, machine, start_of
me = os.getpid()
assert start_of(me) and start_of(me) == start_of(me)
assert not is_gone(me, start_of(me)) and is_gone(me, "another")
assert 0 <= time.time() - began() < 60
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
start = start_of(child.pid)
assert not is_gone(child.pid, start)
child.kill()
while not is_gone(child.pid, start):  # a zombie, which nobody has waited for
    time.sleep(0.01)
child.wait()
assert is_gone(child.pid, start) and start_of(child.pid) == ""
assert machine().split()
print("fine")
"""
    done = run("darwin", program)
    assert done.stdout == "fine\n", done.stderr


def test_without_psutil_nothing_is_known_and_nothing_fails(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["psutil"] = None
import os
from cachegraph.processes import began, is_gone, start_of
from cachegraph.store.filesystem import file_system
from pathlib import Path
assert start_of(os.getpid()) == "" and not is_gone(os.getpid(), "") and began() > 0
print(file_system(Path("/")))
{CACHED}
"""
    done = run("darwin", program, tmp_path / "cache")
    assert "psutil is not installed" in done.stdout, done.stderr
    assert done.stdout.endswith("hit {}\n"), done.stderr


@pytest.mark.parametrize(("opts", "local"), [("rw,local,rootfs", True), ("rw,nosuid", False), ("", False)])
def test_elsewhere_a_file_system_is_local_if_the_system_says_so(
    opts: str, local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psutil

    mounts = [
        SimpleNamespace(mountpoint="/nowhere/at/all", opts="local", fstype="gone"),
        SimpleNamespace(mountpoint=str(tmp_path), opts=opts, fstype="apfs"),
    ]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
    monkeypatch.setattr(sys, "platform", "darwin")
    found = file_system(tmp_path / "not" / "made")
    assert found == (FileSystem("apfs", True) if local else FileSystem("unknown (no local one)", False))


def test_on_macos_the_engine_and_the_adapter_say_where_they_work() -> None:
    done = run("darwin", "import engine")
    assert done.returncode == 1
    assert (
        "importing engine on darwin: compiled code is stored and linked as on Linux; use Linux or a container"
        in done.stderr
    )
    installing = run("darwin", "import cachegraph.pytensor as adapter; adapter.install()")
    assert "installing cachegraph.pytensor on darwin: " in installing.stderr


def test_on_windows_importing_says_what_is_missing_and_what_to_use() -> None:
    for module in ("cachegraph", "cachegraph.cache", "cachegraph.cli", "engine"):
        done = run("win32", f"import {module}")
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert "importing cachegraph on win32: it needs owners, modes and locks of files" in last
        assert "WSL 2" in last


def test_a_refusal_can_be_caught_as_an_import_that_failed() -> None:
    done = run("win32", "try:\n    import cachegraph\nexcept ImportError:\n    print('went on')")
    assert done.stdout == "went on\n", done.stderr


@pytest.mark.parametrize(("processor", "is_known"), [("x86_64", True), ("aarch64", True), ("riscv64", False)])
def test_code_is_for_processors_whose_objects_are_checked(
    processor: str, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: processor)
    if is_known:
        return platforms.require_linux("testing")
    with pytest.raises(UnsupportedPlatform, match="testing on Linux on riscv64: code is checked for"):
        platforms.require_linux("testing")


def test_where_nobody_restricts_processors_all_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.runtime.target import process_threads

    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CACHEGRAPH_NUM_THREADS", raising=False)
    assert process_threads() == os.cpu_count()
