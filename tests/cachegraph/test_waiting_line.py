"""A long compilation says on a terminal what it is doing; the line is gone in the end, and breaks nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminals import run_on_terminal

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
BEGINNING = """
import os, sys, threading, time
import cachegraph.waiting_line as waiting
from cachegraph.waiting_line import shown_if_long

waiting.LONG = {long}
waiting._PAUSE = 0.02

def build(seconds=0.3):
    with shown_if_long("building all"):
        time.sleep(seconds)
"""
END = "\nprint('done')\n"


def shown_by(program: str, long: float = 0.0, columns: int = 80, **environment: str) -> str:
    """Return what a program shows on a terminal that is its standard error; it must come to its end."""
    whole = BEGINNING.format(long=long) + program + END
    ran = run_on_terminal(
        [sys.executable, "-c", whole], ENVIRONMENT | environment, only_errors=True, columns=columns
    )
    assert (ran.code, ran.output) == (0, b"done\n"), ran
    return ran.shown.decode()


def screen(shown: str) -> str:
    """Return the line as it stands in the end: carriage returns overwrite it."""
    line = ""
    for part in shown.split("\r"):
        line = part + line[len(part) :]
    return line.rstrip()


def test_a_long_block_is_shown_with_its_seconds_and_gone_in_the_end():
    shown = shown_by("build(1.2)")
    assert "building all, 0 s" in shown
    assert "building all, 1 s" in shown
    assert "\x1b" not in shown
    assert screen(shown) == ""
    assert shown.endswith("\r")


def test_a_short_block_shows_nothing():
    assert shown_by("build(0)", long=60) == ""


def test_a_block_within_another_has_the_line_meanwhile_and_counts_from_the_outers_beginning():
    shown = shown_by("""
with shown_if_long("outside"):
    time.sleep(1.1)
    with shown_if_long("inside") as show:
        time.sleep(0.1)
        show("inside still")
        time.sleep(0.1)
    time.sleep(0.1)
""")
    texts = ["outside, 1 s", "inside, 1 s", "inside still, 1 s", "outside, 1 s"]
    places = [shown.index(texts[0]), shown.index(texts[1]), shown.index(texts[2]), shown.rindex(texts[3])]
    assert places == sorted(places)


def test_a_narrow_terminal_gets_one_line():
    shown = shown_by("build()", columns=12)
    assert max(len(part) for part in shown.split("\r")) == 11


def test_a_name_is_text_on_one_line_whatever_it_holds():
    shown = shown_by("""
with shown_if_long("f\\x1b[2J\\n\\u202e\\udc80"):
    time.sleep(0.2)
""")
    assert "f?[2J?\\u202e\\udc80, 0 s" in shown
    assert "\n" not in shown


def test_an_interrupt_leaves_no_line_and_the_next_block_has_one():
    shown = shown_by("""
import signal
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    build(60)
except KeyboardInterrupt:
    sys.stderr.write("interrupted\\n")
with shown_if_long("the next"):
    time.sleep(0.2)
""")
    before, after = shown.split("interrupted")
    assert "building all" in before
    assert screen(before) == ""
    assert "the next" in after
    assert "building" not in after


NOBODY_LOOKS = {
    "a thread": "it = threading.Thread(target=build); it.start(); it.join()",
    "a worker": """
import multiprocessing
it = multiprocessing.get_context("fork").Process(target=build)
it.start()
it.join()
assert it.exitcode == 0
""",
    "a forked child of a build": """
import warnings
warnings.simplefilter("ignore")  # a process with threads had better not fork
waiting.LONG = 60
with shown_if_long("outside"):
    child = os.fork()
    if child == 0:
        waiting.LONG = 0.0
        build()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
""",
    "the background": """
import fcntl, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    build()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
    "no standard error": "sys.stderr = None; build()",
    "a closed standard error": "sys.stderr.close(); build()",
    "a closed descriptor": "os.close(2); build()",
    "a full disk": "os.dup2(os.open('/dev/full', os.O_WRONLY), 2); sys.stderr.isatty = lambda: True; build()",
    "something without a descriptor": """
class Shown:
    def isatty(self): return True
    def flush(self): pass
sys.stderr = Shown()
build()
""",
    "no more threads": """
def refused(self): raise RuntimeError("can't start new thread")
threading.Thread.start = refused
build()
""",
}


@pytest.mark.parametrize("program", NOBODY_LOOKS.values(), ids=NOBODY_LOOKS)
def test_where_nobody_looks_nothing_is_shown_and_nothing_breaks(program):
    assert shown_by(program) == ""


def test_a_terminal_that_understands_nothing_gets_nothing():
    assert shown_by("build()", TERM="dumb") == ""


def test_a_descriptor_that_became_a_file_meanwhile_is_not_written(tmp_path):
    path = tmp_path / "mine"
    shown_by(f"""
with shown_if_long("building"):
    time.sleep(0.2)
    os.close(2)
    assert os.open({str(path)!r}, os.O_CREAT | os.O_WRONLY) == 2
    time.sleep(0.2)
""")
    assert path.read_bytes() == b""


def test_a_terminal_that_takes_no_text_holds_nothing_up():
    shown_by("""
import termios
termios.tcflow(2, termios.TCOOFF)
began = time.perf_counter()
build()
assert time.perf_counter() - began < 10
termios.tcflow(2, termios.TCOON)
""")


def test_a_pipe_gets_nothing():
    program = BEGINNING.format(long=0.0) + "build()" + END
    done = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
