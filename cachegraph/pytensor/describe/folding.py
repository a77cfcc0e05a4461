"""The Ops that PyTensor folds while it rewrites a graph: their code has run by then (purity.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pytensor.graph.basic import Constant

_recording = threading.local()


@contextmanager
def recording_folded_ops() -> Iterator[list[Any]]:
    """Record the Ops that this thread folds meanwhile, in the list that this yields."""
    lists: list[list[Any]] = vars(_recording).setdefault("lists", [])
    found: list[Any] = []
    lists.append(found)
    try:
        yield found
    finally:
        lists.remove(found)


def recording_folds(fold: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fold`, PyTensor's constant folding of a node, made to record the Op that it runs."""

    def noted(fgraph: Any, node: Any) -> Any:
        for variable in node.inputs:
            # Most nodes are left here, by what is quickest to ask; `fold` would return the same.
            if variable.owner is not None or not isinstance(variable, Constant):
                return False
        for found in vars(_recording).get("lists", ()):
            found.append(node.op)
        return fold(fgraph, node)

    return noted
