"""A table of the nodes of forty-six PyMC models that the engine computes, and of those that PyTensor does.

    python tools/pymc_models.py [MODEL ...]

Compiles the log density and its gradient of each model (tests/engine/pytensor/models/), or of those
named, by the mode ENGINE, and calls them at the initial point. Prints a table of what PyTensor computes;
"whole" says that it is nothing.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("PYTENSOR_FLAGS", "cxx=")

import engine.pytensor
from engine.pytensor.stages import EngineStage
from tests.engine.pytensor.comparing_models import density, left_of, points
from tests.engine.pytensor.models import MODELS


def main() -> None:
    """Compile the models named in the command line, or all, and print the table."""
    warnings.simplefilter("ignore")
    engine.pytensor.register()
    table = Table(title="Log density and gradient by the mode ENGINE")
    for name in ("model", "nodes", "by the engine", "log density", "by PyTensor"):
        table.add_column(name, justify="left" if name in ("model", "by PyTensor") else "right")
    for name in sys.argv[1:] or MODELS:
        table.add_row(name, *row_of(name))
    Console().print(table)


def row_of(name: str) -> list[str]:
    """Return the cells of a model: nodes when rewritten, those of the engine, the value, the rest."""
    model = MODELS[name]()
    function = density(model, "ENGINE")
    stages = function.vm.jit_fn.stages
    of_engine = sum(len(stage.nodes) for stage in stages if isinstance(stage, EngineStage))
    (point,) = points(model, 0.0, 1)
    value = float(function(*point)[0])
    left = ", ".join(sorted(left_of(function))) or "whole"
    return [str(sum(len(stage.nodes) for stage in stages)), str(of_engine), f"{value:.4f}", left]


if __name__ == "__main__":
    main()
