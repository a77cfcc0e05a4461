"""What a user's Op gives to be stored follows from its code and from types: other data, in another
process, has other results.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import Apply, Op

PROGRAM = """
import json
import sys
import warnings

import numpy as np

import engine
import engine.tensor as pt
from engine.graph import Apply, Op

warnings.simplefilter("ignore")
number = float(sys.argv[1])
D = np.full(40, number)


def first_of(variable):
    while variable.owner is not None:
        variable = variable.owner.inputs[0]
    return variable.data[0]


class Scaled(Op):
    __props__ = ()
    dtype_of_result = pt.dvector

    def make_node(self, x, d):
        return Apply(self, [pt.as_tensor_variable(x), pt.as_tensor_variable(d)], [self.dtype_of_result()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * inputs[1][0]


class CompiledArrays(Scaled):
    def numba_function(self, node):
        try:
            factor = np.sqrt(node.inputs[1].data)[0] ** 2
        except AttributeError:
            return lambda x, d: x * d[0]
        return lambda x, d: x * factor


class CompiledNumber(CompiledArrays):
    dtype_of_result = pt.dscalar

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][0] * inputs[1][0]

    def numba_function(self, node):
        try:
            factor = float(node.inputs[1].data[0])
        except AttributeError:
            return lambda x, d: x[0] * d[0]
        return lambda x, d: x[0] * factor


class Repeated(Scaled):
    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.ones(round(inputs[1][0]))


class ByNode(Repeated):
    def infer_shape(self, fgraph, node, input_shapes):
        return [(int(first_of(node.inputs[1])),)]


class ByShapes(Repeated):
    def infer_shape(self, fgraph, node, input_shapes):
        return [(int(first_of(input_shapes[1][0].owner.inputs[0])),)]


found = {}
for kind, op in {"arrays": CompiledArrays(), "number": CompiledNumber(), "node": ByNode(), "shapes": ByShapes()}.items():
    x, held = pt.dvector("x"), pt.dvector("held")
    layer = engine.OpFromGraph([x, held], [op(x, held * 1.0)], inline=True)
    results = [op(x, pt.constant(D)), layer(x, pt.constant(D)), op(x, pt.exp(pt.constant(np.log(D))))]
    if kind in ("node", "shapes"):
        results = [result.shape[0] for result in results]
    f = engine.function([x], results)
    found[kind] = [f.cache_info.outcome, [np.sum(value).item() for value in f(np.ones(1))]]
print(json.dumps(found))
"""


def test_what_an_op_gives_to_be_stored_is_that_of_the_data_at_hand(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py"]
    for number, outcome in ((5.0, "miss"), (6.0, "hit")):
        done = subprocess.run([*command, str(number)], cwd=tmp_path, check=True, capture_output=True)
        for kind, (found, values) in json.loads(done.stdout).items():
            assert (kind, found) == (kind, outcome)
            np.testing.assert_allclose(values, number, rtol=1e-12)


class Padded(Op):
    """The first input with as many zeros behind it as the second, a number, says."""

    __props__ = ()
    seen: list[Any] = []

    def make_node(self, x: Any, n: Any) -> Apply:
        return Apply(self, [pt.as_tensor_variable(x), pt.as_tensor_variable(n)], [pt.dvector()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = np.append(inputs[0], np.zeros(int(inputs[1])))

    def infer_shape(self, fgraph: Any, node: Apply, input_shapes: Any) -> Any:
        return [(input_shapes[0][0] + node.inputs[1],)]


def test_lengths_are_those_of_the_inputs_at_hand_though_the_op_does_not_see_them() -> None:
    x, n = pt.dvector("x"), pt.lscalar("n")
    padded = Padded()(pt.exp(x), n * 2)
    f = engine.function([x, n], [padded.shape[0], Padded()(padded, pt.constant(3)).shape[0]])
    assert [int(value) for value in f(np.ones(4), 5)] == [14, 17]
    assert not any(isinstance(node.op, Padded) for node in f.maker.fgraph.apply_nodes)


def test_an_infer_shape_that_raises_is_told_and_the_result_has_its_length() -> None:
    class Failing(Padded):
        def infer_shape(self, fgraph: Any, node: Any, input_shapes: Any) -> Any:
            return [(input_shapes[0][0] + int(node.inputs[1].data),)]

    x = pt.dvector("x")
    with pytest.warns(RuntimeWarning, match=r"Asking Failing for shapes: .*no attribute 'data'"):
        f = engine.function([x], Failing()(x, pt.constant(3)).shape[0])
    assert int(f(np.ones(4))) == 7
