"""A process that registers what reads a file and the environment, and prints how functions came about, as
JSON."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.tensor.math import Dot
from pytensor.tensor.rewriting.basic import register_canonicalize

import cachegraph.pytensor


class Scaled(Op):
    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, storage: Any) -> None:
        storage[0][0] = inputs[0]


@register_funcify_default_op_cache_key(Scaled)
def scaled(op: Any, **kwargs: Any) -> Any:
    factor = float(np.loadtxt("factor.txt"))

    @numba_njit
    def times_factor(x: Any) -> Any:
        return x * factor

    return times_factor


def main() -> None:
    cachegraph.pytensor.install()
    x = pt.vector("x")

    def outcome(result: Any) -> str:
        return str(cachegraph.pytensor.explain(pytensor.function([x], result, mode="NUMBA")).outcome)

    found = {
        "an Op with an implementation that reads": outcome(Scaled()(x)),
        "another Op": outcome(pt.exp(x)),
    }

    @register_canonicalize
    @node_rewriter([Dot])
    def multiplied(fgraph: Any, node: Any) -> Any:
        return [pt.mul(*node.inputs)] if os.getenv("MULTIPLIED") else None

    found["a rewrite that reads"] = outcome(pt.exp(x) + 1)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
