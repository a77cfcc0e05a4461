"""The operations in this engine. Its cache is where CACHEGRAPH_DIR says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import engine
import engine.tensor as pt
from symbolic import compiled, types_of


def build(name: str, arrays: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Return the operation `name`, compiled for arrays like these, and its arguments."""
    return compiled(engine.function, pt, name, types_of(arrays)), list(arrays)
