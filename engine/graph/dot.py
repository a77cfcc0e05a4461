"""Graphs in the DOT language of Graphviz, for its programs.

Boxes are nodes, ellipses are variables without an owner. Labels on an edge tell the output it leaves and
the input it enters, if there are several. Each inner graph is drawn once, in a frame, and a dashed line
joins it to the nodes that apply its Op.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.graph.apply import Apply
from engine.graph.traversal import inner_graph
from engine.graph.variables import Constant, Variable

MAX_TEXT = 40


def to_dot(graph: Any) -> str:
    """Return `graph` (mutable, frozen, or a compiled function's) as DOT text."""
    graph = graph.maker.fgraph if hasattr(graph, "maker") else graph
    return "\n".join(
        ["digraph {", '  node [fontname="monospace" fontsize=10]', *_Dot().lines(graph), "}", ""]
    )


class _Dot:
    """A writer of DOT text; names start with a frame number, since inner graphs may share nodes."""

    def __init__(self) -> None:
        self.names: dict[tuple[int, Variable | Apply], str] = {}
        self.frames: dict[Any, int] = {}

    def lines(self, graph: Any) -> Iterator[str]:
        yield from self.body(graph, 0, "  ")
        drawn = 0
        while drawn < len(self.frames):  # inner graphs may have inner graphs
            drawn += 1
            op = list(self.frames)[drawn - 1]
            yield f"  subgraph cluster_{drawn} {{"
            yield f"    label={_quoted(op)} style=dashed"
            yield from self.body(inner_graph(op), drawn, "    ")
            yield "  }"

    def body(self, graph: Any, frame: int, indent: str) -> Iterator[str]:
        for number, variable in enumerate(graph.inputs):
            yield f"{indent}{self.name(frame, variable)} [label={_quoted(variable.name or f'i{number}')}]"
        for node in graph.toposort():
            yield from self.node(node, frame, indent)
        for number, variable in enumerate(graph.outputs):
            yield from self.root(variable, frame, indent)
            yield f'{indent}out{frame}_{number} [label="o{number}" shape=plaintext]'
            yield f"{indent}{self.source(variable, frame)} -> out{frame}_{number}{_end(variable, None)}"

    def node(self, node: Apply, frame: int, indent: str) -> Iterator[str]:
        for variable in node.inputs:
            yield from self.root(variable, frame, indent)
        name = self.name(frame, node)
        yield f"{indent}{name} [shape=box label={_quoted(node.op)}]"
        for number, variable in enumerate(node.inputs):
            label = _end(variable, number if len(node.inputs) > 1 else None)
            yield f"{indent}{self.source(variable, frame)} -> {name}{label}"
        held = inner_graph(node.op)
        if held is not None:
            number = self.frames.setdefault(node.op, len(self.frames) + 1)
            yield f"{indent}{name} -> out{number}_0 [style=dashed arrowhead=none constraint=false]"

    def root(self, variable: Variable, frame: int, indent: str) -> Iterator[str]:
        """Yield the line of a constant, or of another variable that is no input, at its first use."""
        if variable.owner is None and (frame, variable) not in self.names:
            text = variable.type if isinstance(variable, Constant) and _is_large(variable) else variable
            yield f"{indent}{self.name(frame, variable)} [label={_quoted(text)}]"

    def source(self, variable: Variable, frame: int) -> str:
        return self.name(frame, variable if variable.owner is None else variable.owner)

    def name(self, frame: int, item: Variable | Apply) -> str:
        return self.names.setdefault((frame, item), f"n{len(self.names)}")


def _is_large(constant: Constant) -> bool:
    return bool(getattr(constant.data, "size", 1) > 10)


def _end(variable: Variable, number: int | None) -> str:
    """Return the attributes of an edge: the output at its tail, the input at its head."""
    several = variable.owner is not None and len(variable.owner.outputs) > 1
    ends = [f'taillabel="{variable.index}"'] if several else []
    if number is not None:
        ends.append(f'headlabel="{number}"')
    return f" [{' '.join(ends)} fontsize=8]" if ends else ""


def _quoted(item: Any) -> str:
    text = " ".join(str(item).split())
    text = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
