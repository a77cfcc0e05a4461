"""When a process began, as the kernel and this process tell it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import cachegraph.processes
from cachegraph.processes import began

PROGRAM = """
import json, os, sys, time
from cachegraph.processes import began
with open(sys.argv[1], "w"):
    pass
written = os.stat(sys.argv[1]).st_ctime
reader, writer = os.pipe()
if not os.fork():
    os.write(writer, json.dumps(began()).encode())
    os._exit(0)
os.wait()
print(json.dumps([began(), written, json.loads(os.read(reader, 100))]))
"""


def test_a_process_began_between_its_start_and_what_it_writes(tmp_path: Path) -> None:
    before = time.time()
    time.sleep(0.01)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "written")], capture_output=True, text=True, check=True
    )
    start, written, _ = json.loads(done.stdout)
    assert before < start < written


def test_a_forked_child_began_with_its_parent(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "written")], capture_output=True, text=True, check=True
    )
    start, _, start_in_child = json.loads(done.stdout)
    assert abs(start - start_in_child) < 0.002


def test_where_the_kernel_does_not_tell_it_is_the_first_import(monkeypatch) -> None:
    monkeypatch.setattr(cachegraph.processes, "start_of", lambda pid: "")
    assert began.__wrapped__() == cachegraph.processes._IMPORTED
