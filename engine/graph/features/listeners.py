"""Features that only listen: `NodeFinder`, `PrintListener` and `PreserveVariableAttributes`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from engine.graph.features.protocol import (
    Bookkeeper,
    Feature,
    is_revert,
    refuse_second,
    register_feature_callback,
)
from engine.graph.variables import Constant

if TYPE_CHECKING:
    from engine.graph.apply import Apply
    from engine.graph.fgraph import FunctionGraph
    from engine.graph.op import Op
    from engine.graph.variables import Variable


class NodeFinder(Bookkeeper):
    """Keeps the nodes of each Op: `fgraph.get_nodes(op)`."""

    provides = ("get_nodes",)

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[Op, dict[Apply, None]] = {}

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        refuse_second(fgraph, self)
        super().on_attach(fgraph)

    @register_feature_callback
    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None:
        """Add a node."""
        self.nodes.setdefault(node.op, {})[node] = None

    @register_feature_callback
    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None:
        """Forget a node."""
        found = self.nodes[node.op]
        del found[node]
        if not found:
            del self.nodes[node.op]

    def get_nodes(self, fgraph: FunctionGraph, op: Op) -> list[Apply]:
        """The nodes of `fgraph` whose Op equals `op`, in the order they came."""
        return list(self.nodes.get(op, ()))

    def clone(self) -> NodeFinder:
        return type(self)()


class PrintListener(Feature):
    """Writes a line to `file` (None: the standard output) on whatever happens to the graph, while it is `active`."""

    def __init__(self, active: bool = True, file: TextIO | None = None) -> None:
        self.active = active
        self.file = file

    def _write(self, line: str) -> None:
        if self.active:
            (self.file or sys.stdout).write(f"-- {line}\n")

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Write which graph it is."""
        self._write(f"attaching to: {fgraph}")

    @register_feature_callback
    def on_detach(self, fgraph: FunctionGraph) -> None:
        """Write which graph it was."""
        self._write(f"detaching from: {fgraph}")

    @register_feature_callback
    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None:
        """Write which node came in."""
        self._write(f"importing: {node}, reason: {reason}")

    @register_feature_callback
    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: str | None) -> None:
        """Write which node went out."""
        self._write(f"pruning: {node}, reason: {reason}")

    @register_feature_callback
    def on_change_input(
        self, fgraph: FunctionGraph, node: Apply, i: int, old: Variable, new: Variable, reason: str | None
    ) -> None:
        """Write which input changed."""
        self._write(f"changing ({node}.inputs[{i}]) from {old} to {new}, reason: {reason}")


class PreserveVariableAttributes(Feature):
    """Gives what replaces a computed variable its name, if it has none of its own, and takes the name back with the
    replacement."""

    def __init__(self) -> None:
        # For each replacement that gave a name, how often it was made again since.
        self._named: dict[tuple[Apply, int, Variable], int] = {}

    @register_feature_callback
    def on_change_input(
        self, fgraph: FunctionGraph, node: Apply, i: int, old: Variable, new: Variable, reason: str | None
    ) -> None:
        """Hand on a name, or take it back."""
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
    """Whether `variable` has no name and may get one: constants may be part of other graphs."""
    return variable.name is None and not isinstance(variable, Constant)
