"""One process of warm_start.py: prints the milliseconds of the processor that each step took, as JSON.

Run as `python warm_subject.py function` (the demo's model: function() and the first call, after
`import numpy` and the import of the engine), or as `python warm_subject.py import` (the import of the engine
beside numpy and SciPy, as in a process that has imported PyMC).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "grunfeld"
BESIDE = ("numpy", *(f"scipy.{name}" for name in ("linalg", "optimize", "sparse", "special", "stats")))

milliseconds: dict[str, float] = {}


def main() -> None:
    """Measure what the command line names, and print it."""
    outcome = {"function": function, "import": beside_scipy}[sys.argv[1]]()
    print(json.dumps({"outcome": outcome, "milliseconds": milliseconds}))


def function() -> str:
    """Make the demo's regression ready; return the outcome of its look-up."""
    sys.path[:0] = [str(EXAMPLE), str(EXAMPLE.parent)]
    with step("import numpy"):
        np = import_module("numpy")
    with step("import engine"):
        engine = imported_engine()
        model = import_module("model")
    panel = import_module("panel").read_panel()
    with step("build the graph"):
        inputs, outputs = model.build("normal", panel)
    shapes = model.parameter_shapes(len(panel.firms))
    arguments = [np.full(shapes[variable.name], 0.1) for variable in inputs]
    with step("function()"):
        f = engine.function(inputs, outputs, name="normal")
    with step("first call"):
        f(*arguments)
    found: str = f.cache_info.outcome
    return found


def beside_scipy() -> str:
    """Import the engine after numpy and SciPy."""
    for name in BESIDE:
        import_module(name)
    with step("import engine beside SciPy"):
        imported_engine()
    return "imported"


def imported_engine() -> Any:
    """Return the engine, with the language and the names that a model needs: it imports them at first use."""
    engine = import_module("engine")
    import_module("engine.tensor")
    for name in ("function", "grad"):
        getattr(engine, name)
    return engine


@contextmanager
def step(name: str) -> Iterator[None]:
    """Measure the block as the step `name`."""
    begin = process_time()
    yield
    milliseconds[name] = 1e3 * (process_time() - begin)


if __name__ == "__main__":
    main()
