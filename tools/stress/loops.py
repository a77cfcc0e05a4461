"""Random loops, nested and of all kinds of states, with first and second derivatives, against the
numpy backend.

Each is compiled rewritten and run by the reference; one in eight by compiled kernels, too.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from rounds import ROOT, run

sys.path.insert(0, str(ROOT))
os.environ["CACHEGRAPH_MODE"] = "off"

import engine
from engine.graph.reference import evaluate
from tests.engine.generated_loops import GeneratedLoop, generated_loop

REWRITTEN = engine.Mode("numpy", engine.Mode().optimizer)


def attack(numbers: random.Random, directory: Path) -> str | None:
    """Return the fault of one random loop: a derivative that does not compile, or is not the reference's."""
    loop = generated_loop(numbers, depth=1)
    mode = None if numbers.random() < 0.125 else REWRITTEN
    try:
        outputs = [*loop.outputs, *loop.slopes()]
        return _difference(loop, outputs, mode)
    except Exception:
        return traceback.format_exc()


def _difference(loop: GeneratedLoop, outputs: list[Any], mode: Any) -> str | None:
    due = evaluate(loop.inputs, outputs, loop.values)
    f = engine.function(loop.inputs, outputs, mode=mode, on_unused_input="ignore")
    for number, (found, expected) in enumerate(zip(f(*loop.values), due, strict=True)):
        scale = float(np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected)))
        if not np.allclose(found, expected, rtol=1e-8, atol=1e-10 * scale, equal_nan=True):
            return f"output {number} is {found}, by the reference {expected}"
    return None


if __name__ == "__main__":
    sys.exit(run(__doc__, attack))
