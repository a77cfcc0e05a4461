"""A build that takes long says so on a terminal: that of a function, and of which of its kernels."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.terminals import run_on_terminal

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import time
import cachegraph.waiting_line as waiting
import engine, engine.tensor as pt
import engine.compiling.build as build
import engine.compiling.programs as programs

waiting.LONG = 0.0
waiting._PAUSE = 0.01

def slowed(step):
    def slow(*arguments):
        time.sleep(0.1)
        return step(*arguments)
    return slow

build.run_pipeline, programs._compiled = slowed(build.run_pipeline), slowed(programs._compiled)
x = pt.vector("x")
for _ in range(2):
    print(engine.function([x], [pt.exp(x), pt.sum(x)], name="mine").cache_info.outcome)
"""


def test_a_build_and_its_kernels_are_shown_and_a_hit_is_not(cache_directory):
    command = [sys.executable, "-c", PROGRAM]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = run_on_terminal(command, environment, only_errors=True)
    assert (ran.code, ran.output) == (0, b"miss\nhit\n")
    shown = ran.shown.decode()
    texts = ("building mine, 0 s", "compiling kernel 1 of", "compiling kernel 2 of")
    places = [shown.index(text) for text in texts]
    assert places == sorted(places)
    assert shown.endswith("\r")
    assert run_on_terminal(command, environment, only_errors=True).shown == b""
