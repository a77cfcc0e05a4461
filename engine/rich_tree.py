"""`dprint(..., file="rich")`: a graph as a tree of the library rich, which shows it in colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from engine.graph.apply import Apply
from engine.graph.traversal import apply_ancestors, inner_graph
from engine.graph.variables import Variable

if TYPE_CHECKING:
    from rich.tree import Tree

COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")


def rich_tree(
    outputs: Sequence[Variable],
    label: Callable[[Variable], str],
    inner: Mapping[Any, Iterable[Apply]],
    depth: int = -1,
    stop_on_name: bool = False,
) -> Tree:
    """Return a tree with a hidden root and a branch for each of `outputs`, written by `label`.

    A node that is used several times has a colour; it is shown whole the first time, and with `···` below
    it afterwards. A last branch has the graphs within the Ops of `inner`, which `label` may add to.
    """
    from rich.tree import Tree

    root = Tree("", hide_root=True)
    shown = _TreeBranches(label, _colors(outputs), depth, stop_on_name)
    shown.add(root, outputs)
    below: Tree | None = None
    done: set[Any] = set()
    while remaining := [op for op in inner if op not in done]:
        op = remaining[0]
        done.add(op)
        below = root.add("[bold]Inner graphs:[/bold]") if below is None else below
        found = inner_graph(op).outputs
        within = _TreeBranches(label, _colors(found), depth, stop_on_name)
        within.add(below.add(_escaped(str(op))), found)
    return root


def _colors(outputs: Sequence[Variable]) -> dict[Apply, str]:
    """Return a colour for each node that is used several times, in turn."""
    nodes = list(apply_ancestors(outputs))
    uses = Counter(v.owner for node in nodes for v in node.inputs if v.owner is not None)
    uses.update(v.owner for v in outputs if v.owner is not None)
    colors = cycle(COLORS)
    return {node: next(colors) for node in nodes if uses[node] > 1}


class _TreeBranches:
    """The branches of one graph, and the nodes that were shown."""

    def __init__(
        self,
        label: Callable[[Variable], str],
        colors: Mapping[Apply, str],
        depth: int,
        stop_on_name: bool,
    ) -> None:
        self.label = label
        self.colors = colors
        self.depth = depth
        self.stop_on_name = stop_on_name
        self.done: set[Apply] = set()

    def add(self, root: Tree, outputs: Sequence[Variable]) -> None:
        """Add a branch for each of `outputs` to `root`."""
        waiting = [(root, variable, 1) for variable in reversed(outputs)]
        while waiting and self.depth != 0:
            parent, variable, level = waiting.pop()
            node = variable.owner
            color = None if node is None else self.colors.get(node)
            branch = parent.add(_colored(_escaped(self.label(variable)), color))
            if node is None or not node.inputs or level == self.depth:
                continue
            if node in self.done or (self.stop_on_name and variable.name is not None):
                branch.add(_colored("···", color))
                continue
            self.done.add(node)
            waiting += [(branch, each, level + 1) for each in reversed(node.inputs)]


def _colored(text: str, color: str | None) -> str:
    return text if color is None else f"[{color}]{text}[/{color}]"


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
