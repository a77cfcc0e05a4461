"""The models in this engine. Its cache is where CACHEGRAPH_DIR says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engine.tensor as pt
from engine import OpFromGraph, function, grad, scan  # at their first use they would be imported
from engine.tensor.optimize import minimize
from symbolic import MODELS, Framework


def build(name: str) -> Callable[[], Callable[..., Any]]:
    """Build the graph of the model `name`, and return the function that compiles it."""
    framework = Framework(pt, grad, OpFromGraph, scan, minimize)
    inputs, outputs = MODELS[name](framework)
    return lambda: function(inputs, outputs)
