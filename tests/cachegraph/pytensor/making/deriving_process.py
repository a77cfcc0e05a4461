"""A process that derives the graphs of a PyMC model, and prints the function's numbers and what was found.

    python tests/cachegraph/pytensor/making/deriving_process.py NAME

NAME is a model of tests/engine/pytensor/models. Printed as JSON: the bits of the log density and gradient,
and the hits and misses of levels.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from pymc.blocking import DictToArrayBijection

import cachegraph
import cachegraph.pytensor


def bits_of(model: Any) -> list[str]:
    """Return the bits of the log density and gradient of `model`, as `pm.sample` compiles them."""
    function = model.logp_dlogp_function(ravel_inputs=True)
    start = model.initial_point(0)
    point = DictToArrayBijection.map({v.name: start[v.name] for v in function._grad_vars})
    return [np.asarray(result).tobytes().hex() for result in function(point)]


def counts() -> dict[str, list[int]]:
    """Return the hits and misses of this process, by level."""
    return {level: [found["hits"], found["misses"]] for level, found in cachegraph.counters().levels.items()}


if __name__ == "__main__":
    from tests.engine.pytensor.models import MODELS

    cachegraph.pytensor.install(backend="engine")
    print(json.dumps({"bits": bits_of(MODELS[sys.argv[1]]()), "counts": counts()}))
