"""Users' Ops from one process to the next: a hit as long as their code, and all that it reads, is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

MODULES = {
    "steady": '''
import engine.tensor as pt
from engine.graph import Apply, Op


class Elementwise(Op):
    """What the others are built on."""

    __props__ = ()

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = self.value(inputs[0])

    def infer_shape(self, fgraph, node, input_shapes):
        return input_shapes


class Steady(Elementwise):
    def value(self, x):
        return x + 100
''',
    "body": """
from steady import Elementwise


class Body(Elementwise):
    def value(self, x):
        return x * 2
""",
    "helper": """
def twice(x):
    return x * 2
""",
    "calls": """
import helper
from steady import Elementwise


class Calls(Elementwise):
    def value(self, x):
        return helper.twice(x)
""",
    "props": """
from steady import Elementwise


class Applied(Elementwise):
    __props__ = ("function",)

    def __init__(self, function):
        self.function = function

    def value(self, x):
        return self.function(x)


applied = Applied(lambda x: x * 2)
""",
    "closures": """
import engine
import engine.tensor as pt


def times(factor):
    @engine.wrap_py(itypes=pt.dvector, otypes=[pt.dvector])
    def scaled(x):
        return x * factor

    return scaled


closed = times(2)
""",
    "scalars": """
from engine.scalar import ScalarOp
from engine.scalar.promotion import floating
from engine.tensor.elemwise import Elemwise


class Number(ScalarOp):
    rule = staticmethod(floating)

    def _impl(self, a):
        return a * 2


number = Elemwise(Number())
""",
}

EDITS = {
    "body": ("x * 2", "x * 3"),
    "helper": ("x * 2", "x * 3"),
    "props": ("lambda x: x * 2", "lambda x: x * 3"),
    "closures": ("times(2)", "times(3)"),
    "scalars": ("a * 2", "a * 3"),
}
EDITED = ("body", "calls", "props", "closures", "scalars", "in a loop", "in a graph")

PROGRAM = """
import json, sys
import numpy as np
import engine, engine.tensor as pt
import body, calls, closures, props, scalars, steady

x = pt.vector("x")
inner = pt.vector("inner")
layer = engine.OpFromGraph([inner], [pt.exp(body.Body()(inner))])
rows = engine.scan(lambda s: body.Body()(s), outputs_info=[x], n_steps=2, return_updates=False)
functions = {
    "steady": steady.Steady()(x),
    "body": body.Body()(x),
    "calls": calls.Calls()(x),
    "props": props.applied(x),
    "closures": closures.closed(x),
    "scalars": scalars.number(x),
    "in a loop": rows[-1],
    "in a graph": pt.log(layer(x) * layer(x)),
}
found = {}
for name, output in functions.items():
    f = engine.function([x], pt.exp(output))
    info = f.cache_info
    found[name] = [info.outcome, info.reason, np.log(f([1.0, 2.0])).tolist(), info.compilations, info.rewrites]
print(json.dumps({"functions": found, "modules": [m for m in ("numba", "cloudpickle") if m in sys.modules]}))
"""


def write(directory: Path, edits: dict[str, tuple[str, str]], before: str = "") -> None:
    """Write the modules and the program, the text `before` in front of every line that defines something."""
    directory.mkdir(exist_ok=True)
    for name, source in MODULES.items():
        old, new = edits.get(name, ("", ""))
        assert old in source
        text = source.replace(old, new) if old else source
        for start in ("class ", "def ", "import "):
            text = text.replace(f"\n{start}", f"\n{before}{start}")
        (directory / f"{name}.py").write_text(text)
    (directory / "program.py").write_text(PROGRAM)


def run(directory: Path) -> dict[str, Any]:
    """What the program says, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(directory / "program.py")],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=directory,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def due(name: str, factor: float) -> list[float]:
    x = np.array([1.0, 2.0])
    powers = {"steady": x + 100, "in a loop": x * factor**2, "in a graph": 2 * factor * x}
    return powers.get(name, x * factor).tolist()


def test_an_edited_op_is_a_miss_with_the_new_result_and_one_that_is_the_same_is_a_hit(tmp_path: Path) -> None:
    write(tmp_path / "first", {})
    for name, (outcome, _, value, _, _) in run(tmp_path / "first")["functions"].items():
        assert outcome == "miss", name
        assert value == pytest.approx(due(name, 2)), name

    # Comments, other lines and another directory are nothing.
    write(tmp_path / "moved", {}, before="# a comment\n\n")
    found = run(tmp_path / "moved")
    assert found["modules"] == []
    for name, (outcome, reason, value, compiled, rewritten) in found["functions"].items():
        assert (outcome, reason, compiled, rewritten) == ("hit", "", 0, 0), name
        assert value == pytest.approx(due(name, 2)), name

    write(tmp_path / "first", EDITS)
    for name, (outcome, _, value, _, _) in run(tmp_path / "first")["functions"].items():
        assert outcome == ("miss" if name in EDITED else "hit"), name
        assert value == pytest.approx(due(name, 3 if name in EDITED else 2)), name
