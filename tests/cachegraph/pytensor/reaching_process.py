"""A process that calls one function of PyTensor whose code is kept, and prints what came of it as JSON.

    python -m tests.cachegraph.pytensor.reaching_process [FACTOR] [MODULE ...]

The modules are imported first. With a FACTOR another implementation is registered for an Op of the
function, by that number.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.extra_ops import CumOp

import cachegraph
import cachegraph.pytensor


def register(factor: float) -> None:
    from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

    @register_funcify_default_op_cache_key(CumOp)
    def funcify(op: Any, node: Any = None, **kwargs: Any) -> Any:
        @numba_njit
        def scaled(x: Any) -> Any:
            return x * factor

        return scaled


def main(arguments: list[str]) -> None:
    for argument in arguments:
        if argument.replace(".", "").isdigit():
            register(float(argument))
        else:
            importlib.import_module(argument)
    cachegraph.pytensor.install()
    x = pt.vector("x")
    result = pytensor.function([x], pt.exp(pt.cumsum(x)), mode="NUMBA")(np.zeros(2) + 1)
    code = cachegraph.counters().levels["numba"]
    print(json.dumps({"result": result.tolist(), "hits": code["hits"], "misses": code["misses"]}))


if __name__ == "__main__":
    main(sys.argv[1:])
