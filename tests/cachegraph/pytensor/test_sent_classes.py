"""A class pickled by value, as workers get it, has the key of the imported one: their code is the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OPS = """
import dataclasses

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

FACTOR = 2.0


@dataclasses.dataclass
class Options:
    power: int = 3
    names: list = dataclasses.field(default_factory=list)


class Scaled(Op):
    __props__ = ("k",)
    options = Options()

    def __init__(self, k):
        self.k = k

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * self.k * FACTOR

    def infer_shape(self, fgraph, node, shapes):
        return shapes
"""

PROGRAM = """
import pickle
import sys

import cloudpickle

from cachegraph.fingerprint import fingerprint
from cachegraph.pytensor.describe.graphs import encode_frozen
from cachegraph.pytensor.describe.values import EncodingContext, encode_op

if len(sys.argv) > 1:
    import ops

    op = ops.Scaled(3)
    cloudpickle.register_pickle_by_value(ops)
    with open("op.pkl", "wb") as file:
        file.write(cloudpickle.dumps(op))
else:
    with open("op.pkl", "rb") as file:
        op = pickle.load(file)
held = type(op).options
print(fingerprint(encode_op(op, EncodingContext((), encode_frozen))).hex(), fingerprint(lambda: held).hex())
"""


def test_a_class_that_was_sent_has_the_key_of_the_imported_one(tmp_path: Path) -> None:
    (tmp_path / "with_module").mkdir()
    (tmp_path / "with_module" / "ops.py").write_text(OPS)

    def printed(*arguments: str, path: Path) -> list[str]:
        program = (
            f"import sys; sys.path.insert(0, {str(path)!r}); sys.argv[1:] = {list(arguments)!r}\n{PROGRAM}"
        )
        command = [sys.executable, "-c", program]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.split()

    imported = printed("import", path=tmp_path / "with_module")
    assert len(imported) == 2
    assert printed(path=tmp_path / "without") == imported
