"""Rules for Ops that hold a graph computed once: their graph, in place of the Op."""

from __future__ import annotations

from typing import Any

from engine.pytensor.scope import Scope


def inlined(scope: Scope, node: Any, *inputs: Any) -> list[Any]:
    """Return the results of the Op's own graph on `inputs`."""
    within = scope.inner(node.op.fgraph.inputs, inputs)
    results = within.translate_graph(node.op.fgraph)
    scope.requirements.extend(within.requirements)
    return results
