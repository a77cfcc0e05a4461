"""The models in this engine. Its cache is where CACHEGRAPH_DIR says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engine
import engine.tensor as pt
from engine.tensor.optimize import minimize
from symbolic import MODELS, Framework


def build(name: str) -> Callable[[], Callable[..., Any]]:
    """Build the graph of the model `name`, and return the function that compiles it."""
    framework = Framework(pt, engine.grad, engine.OpFromGraph, engine.scan, minimize)
    inputs, outputs = MODELS[name](framework)
    return lambda: engine.function(inputs, outputs)
