"""A process that derives the graphs of a PyMC model, and prints the function's numbers and what was found.

    python tests/cachegraph/pytensor/making/deriving_process.py NAME [MODULE:FUNCTION]

NAME is a model of tests/engine/pytensor/models. Printed as JSON: the bits of the log density and gradient,
and the hits and misses of levels. Where it calls that function, the process kills itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
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


def die_in(place: str) -> None:
    """Replace the function at `place`, MODULE:FUNCTION, by one that kills this process."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner: Any = import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    assert callable(getattr(owner, name))
    setattr(owner, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))


def main(name: str, *places: str) -> None:
    """Derive the graphs of the model, and print what was found."""
    from tests.engine.pytensor.models import MODELS

    cachegraph.pytensor.install(backend="engine")
    for place in places:
        die_in(place)
    print(json.dumps({"bits": bits_of(MODELS[name]()), "counts": counts()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
