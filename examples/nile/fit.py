"""One process: compile the likelihood of the local level model and its maximum, call both; print what
happened as JSON.

SciPy is imported for the search for the maximum, after the likelihood has answered once and it was
written down which of the heavy modules had been imported by then.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what the parts of the demo share
from steps import account, imported, seconds, step

with step("import numpy"):
    import numpy as np
with step("import engine"):
    import engine
    from model import likelihood, maximum

from river import read_flow

FIRST = (8.0, 6.0)
"""The variances from which the search starts, as logarithms."""


def main() -> None:
    """Do what the module says."""
    flow = read_flow()
    first = np.array(FIRST)
    with step("build the likelihood"):
        inputs, outputs = likelihood(flow)
    with step("likelihood: function()"):
        f = engine.function(inputs, outputs, name="likelihood")
    with step("likelihood: first call"):
        value, gradient = f(first)
    before = imported()
    with step("build the maximum"):
        inputs, outputs = maximum(flow)
    with step("maximum: function()"):
        g = engine.function(inputs, outputs, name="maximum")
    with step("import scipy.optimize"):
        import scipy.optimize  # noqa: F401  what the search would import at its first call
    with step("maximum: first call"):
        solution, success = g(first)
    highest, slope = f(solution)
    report = {
        "seconds": seconds,
        "imported": before,
        "likelihood": account(f),
        "maximum": account(g),
        "first": {"theta": first.tolist(), "value": float(value), "gradient": gradient.tolist()},
        "found": {
            "theta": solution.tolist(),
            "success": bool(success),
            "value": float(highest),
            "gradient": slope.tolist(),
        },
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
