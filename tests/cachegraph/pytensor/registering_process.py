"""A process that registers things with PyTensor one after the other, and prints as JSON the key after each.

python -m tests.cachegraph.pytensor.registering_process FACTOR
"""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

import pytensor.tensor as pt
from pytensor.assumptions import register_assumption
from pytensor.assumptions.core import DIAGONAL, FactState
from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.rewriting.basic import local_useless_fill as local_useless
from pytensor.tensor.rewriting.basic import register_canonicalize

from tests.cachegraph.pytensor.describing import key_of

FACTOR = float(sys.argv[1])


@node_rewriter([Dot])
def local_scaled(fgraph: Any, node: Any) -> Any:
    return [pt.mul(*node.inputs) * FACTOR]


def main() -> None:
    x = pt.vector("x")
    keys = {}

    def note(name: str) -> None:
        keys[name] = key_of([x], pt.exp(x))
        assert key_of([x], pt.exp(x)) == keys[name]

    note("nothing")
    register_canonicalize(local_scaled)
    note("a rewrite among others")
    optdb.register("scaled", dfs_rewriter(local_scaled), "fast_run", position=1.7)
    note("a rewrite of its own")
    optdb.add_tags("scaled", "fast_compile")
    note("a tag more")
    canonicalize = optdb["canonicalize"]
    canonicalize.remove_tags(min(item.name for item in canonicalize.__db__["fast_run"]), "fast_run")
    note("a tag of PyTensor's own less")
    optdb.__position__["scaled"] = 1.8
    note("another position")

    @register_assumption(DIAGONAL, Elemwise)
    def guess(key: Any, op: Any, feature: Any, fgraph: Any, node: Any, states: Any) -> Any:
        return [FactState.TRUE if FACTOR else FactState.UNKNOWN]

    note("an assumption")
    import pytensor.link.numba.dispatch

    note("numba's dispatch loaded")
    from pytensor.link.numba.dispatch.basic import numba_funcify

    @numba_funcify.register(Dot)
    def funcify(op: Any, node: Any = None, **kwargs: Any) -> Any:
        factor = FACTOR
        return lambda a, b: a @ b * factor

    note("code for an Op of PyTensor's own")
    original = numba_funcify.dispatch(Elemwise)

    @numba_funcify.register(Elemwise)
    @functools.wraps(original)
    def wrapping(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs) if FACTOR > 2 else None

    note("what wraps PyTensor's own code, under its name")
    wrapped = functools.wraps(local_useless.fn)(lambda fgraph, node: [node.inputs[0] * FACTOR])
    wrapped.__module__ = local_useless.fn.__module__
    optdb.register("wrapping", dfs_rewriter(node_rewriter([Dot])(wrapped)), "fast_run", position=1.75)
    note("a rewrite of the name of PyTensor's own")
    import pytensor.sparse  # noqa: F401

    note("a package loaded")
    print(json.dumps(keys))


if __name__ == "__main__":
    main()
