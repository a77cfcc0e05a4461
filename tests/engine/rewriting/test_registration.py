"""Users' rewrites, registered by PyTensor's decorators."""

import subprocess
import sys

import pytest

PROGRAM = """
import engine, engine.compile.mode, engine.tensor as pt
from engine.graph.rewriting.basic import node_rewriter
from engine.tensor.elemwise import Elemwise
from engine.tensor.rewriting import basic

@basic.DECORATOR
@node_rewriter([Elemwise])
def local_sine_to_cosine(fgraph, node):
    if node.op == pt.sin:
        return [pt.cos(node.inputs[0])]

x = pt.dvector("x")
f = engine.function([x], pt.sin(x))
print(f.cache_info.outcome, f([0.0])[0])
plain = engine.compile.mode.get_mode("FAST_RUN").excluding("EXCLUDED")
print(engine.function([x], pt.sin(x), mode=plain)([0.0])[0])
"""


def run(program: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.parametrize(
    "name",
    [
        "register_canonicalize",
        "register_stabilize",
        "register_specialize",
        "register_uncanonicalize",
        "register_useless",
    ],
)
def test_what_is_registered_rewrites_functions_unless_it_is_excluded_and_is_in_their_keys(name):
    tag = name.removeprefix("register_")
    excluded = "local_sine_to_cosine" if tag == "canonicalize" else tag
    program = PROGRAM.replace("DECORATOR", name).replace("EXCLUDED", excluded)
    without = program.replace(f"@basic.{name}", "")
    assert run(without) == ["miss", "0.0", "0.0"]
    assert run(program)[1:] == ["1.0", "0.0"]
    assert run(without) == ["hit", "0.0", "0.0"]


def test_a_decorator_takes_tags_and_a_name():
    program = PROGRAM.replace("DECORATOR", 'register_specialize("own_tag", name="own_name")')
    for excluded in ("own_tag", "own_name"):
        assert run(program.replace("EXCLUDED", excluded))[1:] == ["1.0", "0.0"]
