"""The graphs whose encodings are known answers. Run as a program, it prints what this process makes of them as JSON.

Changing an answer in tests/golden/graphs.json means that every key changes: raise ENGINE_VERSION first, note it in the
history in engine/compiling/key.py, then redirect the output of this program into that file.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import engine.tensor as pt
from engine.compiling.key import encode_graph
from engine.graph import FrozenFunctionGraph
from engine.inner import Composite
from engine.scalar import add, exp, mul, scalar_type
from engine.tensor.elemwise import elemwise


def cases() -> dict[str, FrozenFunctionGraph]:
    """Return name -> graph, each built anew."""
    x, m, k = pt.vector("x"), pt.fmatrix("m"), pt.lvector("k")
    row = pt.tensor("row", "float64", (1, None))
    cost = pt.sum(pt.log1p(pt.exp(-x)) * pt.dot(m, x)) + pt.max(x[k])
    return {
        "nothing": FrozenFunctionGraph.from_io([], []),
        "an input": FrozenFunctionGraph.from_io([x], [x]),
        "two of one": FrozenFunctionGraph.from_io([x], [pt.exp(x), pt.exp(x)]),
        "a small constant": FrozenFunctionGraph.from_io([x], [x + np.array([0.1, -0.0])]),
        "data": FrozenFunctionGraph.from_io([x], [x * np.arange(40.0), pt.constant(np.arange(99))]),
        "broadcasting": FrozenFunctionGraph.from_io([row, m], [row + m.T.reshape((pt.shape_i(m, 1), -1))]),
        "several dtypes": FrozenFunctionGraph.from_io([x, m, k], [cost, pt.cast(cost, "float32")]),
        "a fused loop": FrozenFunctionGraph.from_io([x], [elemwise(_composite())(x)]),
    }


def _composite() -> Composite:
    number = scalar_type("float64").make_variable()
    return Composite([number], [add(exp(number), mul(number, number))])


if __name__ == "__main__":
    json.dump({name: encode_graph(graph).hex() for name, graph in cases().items()}, sys.stdout, indent=1)
    print()
