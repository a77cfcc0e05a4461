"""What a user registers with numba, compiled into kernels and entries: as it is now, and as its
description says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OPS = """
import numba
import numpy as np
from numba.extending import overload

import engine.tensor as pt
from engine.graph import Apply, Op
from engine.scalar import ScalarOp
from engine.scalar.promotion import floating
from engine.tensor.elemwise import Elemwise

SCALE = 2.0


def scaled(x):
    raise NotImplementedError


@overload(scaled)
def _scaled(x):
    factor = SCALE
    return lambda x: x * factor


def shifted(x):
    raise NotImplementedError


@overload(shifted)
def _shifted(x):
    return lambda x: x * SCALE


class Number(ScalarOp):
    rule = staticmethod(floating)

    def _impl(self, a):
        return a * SCALE

    def numba_function(self, node):
        return lambda x: scaled(x) + shifted(x)


class Vector(Op):
    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * SCALE * 2

    def numba_function(self, node):
        def function(x):
            found = np.empty_like(x)
            for k in range(len(x)):
                found[k] = scaled(x[k]) + shifted(x[k])
            return found

        return function


MAKERS = {"kernel": lambda x: Elemwise(Number())(x), "entry": lambda x: Vector()(x)}
"""

PROGRAM = """
import json
import sys

import numpy as np

import engine
import engine.tensor as pt
import ops

kind, scales = sys.argv[1], [float(text) for text in sys.argv[2:]]
found = []
for scale in scales:
    ops.SCALE = scale
    x = pt.dvector("x")
    f = engine.function([x], ops.MAKERS[kind](x))
    found.append([f.cache_info.outcome, float(f(np.ones(1))[0])])
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kernel", "entry"])
def test_what_was_registered_is_compiled_as_it_is_now(kind: str, tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPS)
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*scales: str) -> Any:
        command = [sys.executable, "program.py", kind, *scales]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=os.environ)
        return json.loads(done.stdout)

    assert run("2", "5") == [["miss", 4.0], ["miss", 10.0]]
    assert run("5", "2") == [["hit", 10.0], ["hit", 4.0]]
