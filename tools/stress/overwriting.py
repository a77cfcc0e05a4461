"""Random graphs whose Ops overwrite their inputs, against the numpy backend, which overwrites nothing.

One in eight is fused, too. Graphs share a cache: a kernel is compiled once.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import traceback
from pathlib import Path

from rounds import ROOT, run

sys.path.insert(0, str(ROOT))

from tests.engine.overwritten_graphs import UNFUSED, check, overwritten_graph


def attack(numbers: random.Random, directory: Path) -> str | None:
    """Return the fault of one random graph: it does not compile, or a result is not the reference's."""
    graph = overwritten_graph(numbers.randrange(1 << 30))
    try:
        check(graph, None if numbers.random() < 0.125 else UNFUSED)
    except Exception:
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="cachegraph-stress-") as cache:
        os.environ["CACHEGRAPH_DIR"] = cache
        status = run(__doc__, attack)
    sys.exit(status)
