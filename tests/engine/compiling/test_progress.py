"""A compilation that takes long says so on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMPILING = """
import sys
import engine, engine.tensor as pt
import engine.compiling.progress as progress

progress.LONG = {long}

def compiled():
    x = pt.vector("x")
    assert engine.function([x], [pt.exp(x), pt.sum(x)])([0.0])[0] == 1

{call}
print("rich" in sys.modules)
"""
ALONE = "compiled()"
IN_A_THREAD = "import threading; it = threading.Thread(target=compiled); it.start(); it.join()"
IN_A_WORKER = """
import multiprocessing
it = multiprocessing.get_context("fork").Process(target=compiled)
it.start()
it.join()
assert it.exitcode == 0
"""


@pytest.fixture
def shown(cache_directory):
    """Return a function that runs a program in a fresh process whose standard error is a terminal, and returns
    what appears there, and if the program imported rich."""

    def run(call: str, long: float) -> tuple[str, bool]:
        reader, writer = pty.openpty()
        try:
            found = subprocess.run(
                [sys.executable, "-c", COMPILING.format(call=call, long=long)],
                stdout=subprocess.PIPE,
                stderr=writer,
                env=os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80"},
                text=True,
                check=True,
                timeout=60,
            )
        finally:
            os.write(writer, b"<end>")
            os.close(writer)
        written = b""
        while not written.endswith(b"<end>"):
            written += os.read(reader, 65536)
        os.close(reader)
        return written.removesuffix(b"<end>").decode(), found.stdout.strip() == "True"

    return run


def test_kernels_are_counted_on_a_terminal_and_the_line_is_gone_in_the_end(shown):
    written, _ = shown(ALONE, 0.0)
    assert "compiling kernels" in written
    assert "1/" in written
    assert written.index("2/") > written.index("1/")
    assert written.rstrip().endswith("\x1b[2K")  # erases the line


def test_a_short_compilation_shows_nothing_and_does_not_import_rich(shown):
    assert shown(ALONE, 60.0) == ("", False)


@pytest.mark.parametrize("call", [IN_A_THREAD, IN_A_WORKER])
def test_threads_and_workers_show_nothing(shown, call):
    assert shown(call, 0.0)[0] == ""


def test_without_a_terminal_nothing_is_shown(cache_directory):
    program = COMPILING.format(call=ALONE, long=0.0)
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (found.stdout.strip(), found.stderr) == ("False", "")


def test_a_terminal_that_is_gone_ends_no_compilation(shown):
    gone = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 2); sys.stderr.isatty = lambda: True\n"
    assert shown(gone + ALONE, 0.0) == ("", True)
