"""`Requirement`: what must hold for the results of a part of a graph to count."""

from __future__ import annotations

from typing import Any

from cachegraph.named_tuples import NamedTuple


class Requirement(NamedTuple):
    """A condition (a 0-d bool of the engine's) without which `error` is raised with `message`."""

    condition: Any
    error: type[Exception]
    message: str
