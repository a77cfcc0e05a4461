"""One process: build a model, compile it, call it, fit it; print what happened as JSON.

`fit.py MODEL [--no-fit]`. SciPy is imported only for the fit, after the compiled function has
answered once and it was written down which of the heavy modules had been imported by then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what the parts of the demo share
from steps import account, imported, seconds, step

with step("import numpy"):
    import numpy as np
with step("import engine"):
    import engine
    from model import build, parameter_shapes, split

from panel import read_panel


def main() -> None:
    """Compile the model, call it, fit it unless told not to, and print what happened as JSON."""
    parser = argparse.ArgumentParser(description="Compile one of the Grunfeld models and fit it.")
    parser.add_argument("model", choices=("normal", "robust"))
    parser.add_argument("--no-fit", action="store_true", help="stop after the first call")
    arguments = parser.parse_args()
    panel = read_panel()
    firms = len(panel.firms)

    with step("build the graph"):
        inputs, outputs = build(arguments.model, panel)
    with step("function()"):
        f = engine.function(inputs, outputs, name=arguments.model)
    start = first_point(firms)
    with step("first call"):
        density, gradient = call(f, start, firms)
    report: dict[str, Any] = {
        "seconds": seconds,
        "imported": imported(),
        **account(f),
        "first": {"point": start.tolist(), "log_density": density, "gradient": gradient.tolist()},
    }
    if not arguments.no_fit:
        report["fit"] = fit(lambda theta: call(f, theta, firms), start)
    json.dump(report, sys.stdout)


def first_point(firms: int) -> np.ndarray:
    """Return the starting point of the fit: nowhere special, and not where gradients vanish."""
    size = sum(int(np.prod(shape)) for shape in parameter_shapes(firms).values())
    return np.linspace(-0.4, 0.5, size)


def call(f: Callable[..., list[np.ndarray]], theta: np.ndarray, firms: int) -> tuple[float, np.ndarray]:
    """Return the log density and its gradient, as one vector."""
    density, *gradient = f(*split(theta, firms))
    return float(density), np.concatenate([np.ravel(piece) for piece in gradient])


def fit(target: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray) -> dict[str, Any]:
    """Return where L-BFGS finds the maximum of `target`, and how high it is."""
    with step("import scipy.optimize"):
        from scipy.optimize import minimize

    def cost(theta: np.ndarray) -> tuple[float, np.ndarray]:
        density, gradient = target(theta)
        return -density, -gradient

    with step("fit"):
        found = minimize(
            cost,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 5000},
        )
    return {"calls": int(found.nfev), "log_density": -float(found.fun), "estimate": found.x.tolist()}


if __name__ == "__main__":
    main()
