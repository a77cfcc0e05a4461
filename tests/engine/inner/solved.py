"""Functions of solvers, in every mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import engine


def every_mode(inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[engine.Function]:
    """The function compiled, and run by the reference of each Op."""
    for mode in ("FAST_RUN", "NUMPY"):
        yield engine.function(inputs, outputs, mode=mode, on_unused_input="ignore")
