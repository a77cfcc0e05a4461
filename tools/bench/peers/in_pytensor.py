"""The models in PyTensor, in its numba mode. Its caches are where `base_compiledir` in PYTENSOR_FLAGS
says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.tensor.optimize import minimize

from symbolic import MODELS, Framework


def build(name: str) -> Callable[[], Callable[..., Any]]:
    """Build the graph of the model `name`, and return the function that compiles it."""
    framework = Framework(pt, pytensor.grad, OpFromGraph, pytensor.scan, minimize)
    inputs, outputs = MODELS[name](framework)
    return lambda: pytensor.function(inputs, outputs, mode="NUMBA")
