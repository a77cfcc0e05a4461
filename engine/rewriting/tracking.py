"""The rewrites of an Op by what they track, and constants that are one before a graph is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.graph import Constant, FunctionGraph, Op, Variable
from engine.graph.traversal import io_toposort
from engine.rewriting.rewriters import NodeRewriter, is_tracked


class OpToRewriterTracker:
    """Rewrites of nodes by what they track: Ops, classes of Ops, or all."""

    def __init__(self) -> None:
        self.tracked_instances: dict[Op, list[NodeRewriter]] = {}
        self.tracked_types: dict[type, list[NodeRewriter]] = {}
        self.untracked_rewrites: list[NodeRewriter] = []

    def add_tracker(self, rw: NodeRewriter) -> None:
        """Add a rewrite."""
        tracked = rw.tracks()
        if tracked is None:
            self.untracked_rewrites.append(rw)
        for item in tracked or ():
            if isinstance(item, type):
                self.tracked_types.setdefault(item, []).append(rw)
            elif isinstance(item, Op):
                self.tracked_instances.setdefault(item, []).append(rw)
            else:
                self.untracked_rewrites.append(rw)

    def get_trackers(self, op: Op) -> list[NodeRewriter]:
        """Return the rewrites for `op`: those for its class and the ones above, for itself, and for all."""
        by_type = [rw for kind in type(op).__mro__ for rw in self.tracked_types.get(kind, ())]
        own = self.tracked_instances.get(op, [])
        return [*by_type, *own, *[rw for rw in self.untracked_rewrites if is_tracked(rw, op)]]

    def get_rewriters(self) -> Iterator[NodeRewriter]:
        """Yield all rewrites: those for classes, for Ops, and for all."""
        for found in (*self.tracked_types.values(), *self.tracked_instances.values()):
            yield from found
        yield from self.untracked_rewrites


def pre_constant_merge(fgraph: FunctionGraph, variables: Sequence[Variable]) -> list[Variable]:
    """Return `variables`, in whose nodes outside of `fgraph` equal constants are one.

    The nodes are changed.
    """
    known: dict[object, Constant] = {}
    for node in io_toposort([], variables):
        if node in fgraph.apply_nodes:
            continue
        inputs = list(node.inputs)
        for place, variable in enumerate(inputs):
            if isinstance(variable, Constant):
                inputs[place] = known.setdefault(variable.signature(), variable)
        node.inputs = inputs
    return list(variables)
