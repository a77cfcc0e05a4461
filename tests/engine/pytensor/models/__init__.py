"""PyMC models of many kinds, by name; each function returns a model with data made from a fixed seed."""

from __future__ import annotations

from collections.abc import Callable

import pymc as pm

from tests.engine.pytensor.models import discrete, multivariate, processes, regressions, series

MODELS: dict[str, Callable[[], pm.Model]] = {
    name: function
    for module in (regressions, series, processes, multivariate, discrete)
    for name, function in vars(module).items()
    if getattr(function, "__module__", None) == module.__name__
}
