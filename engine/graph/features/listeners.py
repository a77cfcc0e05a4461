"""Features that follow a graph's changes: `Bookkeeper`, `NodeFinder`, `PrintListener` and others."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from engine.graph.feature import (
    Feature,
    is_revert,
    refuse_second,
    register_feature_callback,
    serve_one,
)
from engine.graph.variables import Constant

if TYPE_CHECKING:
    from engine.graph.apply import Apply
    from engine.graph.editable import EditableGraph
    from engine.graph.op import Op
    from engine.graph.variables import Variable


class _Watcher(Protocol):
    def on_import(self, fgraph: EditableGraph, node: Apply, reason: str | None) -> None: ...
    def on_prune(self, fgraph: EditableGraph, node: Apply, reason: str | None) -> None: ...


class Bookkeeper(Feature):
    """Base class of Features that track all nodes of one graph.

    When attached it imports the nodes that exist, when detached it prunes them. Refuses (ValueError) a
    second graph.
    """

    def __init__(self) -> None:
        self.fgraph: EditableGraph | None = None

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        serve_one(self, fgraph)
        for node in fgraph.toposort():
            cast(_Watcher, self).on_import(fgraph, node, "attach")

    @register_feature_callback
    def on_detach(self, fgraph: EditableGraph) -> None:
        for node in reversed(fgraph.toposort()):
            cast(_Watcher, self).on_prune(fgraph, node, "detach")
        self.fgraph = None


class NodeFinder(Bookkeeper):
    """An index of nodes by Op: `fgraph.get_nodes(op)`."""

    provides = ("get_nodes",)

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[Op, dict[Apply, None]] = {}

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        refuse_second(fgraph, self)
        super().on_attach(fgraph)

    @register_feature_callback
    def on_import(self, fgraph: EditableGraph, node: Apply, reason: str | None) -> None:
        self.nodes.setdefault(node.op, {})[node] = None

    @register_feature_callback
    def on_prune(self, fgraph: EditableGraph, node: Apply, reason: str | None) -> None:
        found = self.nodes[node.op]
        del found[node]
        if not found:
            del self.nodes[node.op]

    def get_nodes(self, fgraph: EditableGraph, op: Op) -> list[Apply]:
        """Return the nodes of `fgraph` whose Op equals `op`, in the order of import."""
        return list(self.nodes.get(op, ()))

    def clone(self) -> NodeFinder:
        return type(self)()


class PrintListener(Feature):
    """A log of all changes, written to `file` (None: standard output) while `active` is True."""

    def __init__(self, active: bool = True, file: TextIO | None = None) -> None:
        self.active = active
        self.file = file

    def _write(self, line: str) -> None:
        if self.active:
            (self.file or sys.stdout).write(f"-- {line}\n")

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        self._write(f"attaching to: {fgraph}")

    @register_feature_callback
    def on_detach(self, fgraph: EditableGraph) -> None:
        self._write(f"detaching from: {fgraph}")

    @register_feature_callback
    def on_import(self, fgraph: EditableGraph, node: Apply, reason: str | None) -> None:
        self._write(f"importing: {node}, reason: {reason}")

    @register_feature_callback
    def on_prune(self, fgraph: EditableGraph, node: Apply, reason: str | None) -> None:
        self._write(f"pruning: {node}, reason: {reason}")

    @register_feature_callback
    def on_change_input(
        self, fgraph: EditableGraph, node: Apply, i: int, old: Variable, new: Variable, reason: str | None
    ) -> None:
        self._write(f"changing ({node}.inputs[{i}]) from {old} to {new}, reason: {reason}")


class PreserveVariableAttributes(Feature):
    """Names for replacements: one without a name gets that of the replaced variable, until undone."""

    def __init__(self) -> None:
        # How often each replacement that passed on a name was repeated since.
        self._named: dict[tuple[Apply, int, Variable], int] = {}

    @register_feature_callback
    def on_change_input(
        self, fgraph: EditableGraph, node: Apply, i: int, old: Variable, new: Variable, reason: str | None
    ) -> None:
        if is_revert(reason):
            self._take_back((node, i, old))
        elif (node, i, new) in self._named:
            self._named[node, i, new] += 1
        elif old.owner is not None and old.name is not None and _may_be_named(new):
            new.name = old.name
            self._named[node, i, new] = 0

    def _take_back(self, replacement: tuple[Apply, int, Variable]) -> None:
        if self._named.get(replacement, 0) > 0:
            self._named[replacement] -= 1
        elif replacement in self._named:
            del self._named[replacement]
            replacement[2].name = None

    def clone(self) -> PreserveVariableAttributes:
        return type(self)()


def _may_be_named(variable: Variable) -> bool:
    """Return True if `variable` has no name and may get one: constants may be part of other graphs."""
    return variable.name is None and not isinstance(variable, Constant)
