"""The boxes and edges of a drawing, chosen from a graph: its nodes, inputs, constants and outputs.

A constant has a box at each use, so that no edge crosses the drawing for a 1.0. Of a large graph the nodes
nearest to the outputs are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cachegraph.named_tuples import NamedTuple
from engine.graph.apply import Apply
from engine.graph.traversal import inner_graph, io_toposort
from engine.graph.variables import Constant, Variable

MAX_DRAWN = 300
"""Nodes of one drawing; of larger graphs the rest is left out, and the drawing says how many."""
MAX_ENDS = 60
"""Inputs of one node, and outputs of a graph, that are drawn; one box stands for the others."""
MAX_LABEL = 30
_MAX_TITLE = 1000
_MAX_ITEMS = 10  # larger constants show their type alone


class Box(NamedTuple):
    """A box: its `kind` (node, input, constant, output, omitted), label, and the text when hovered over.

    `held` is the Op whose inner graph the node applies.
    """

    kind: str
    label: str
    title: str
    held: Any = None


class Arrow(NamedTuple):
    """An edge between two boxes, by number, and the text when hovered over."""

    tail: int
    head: int
    title: str


class Picture(NamedTuple):
    """The boxes of a graph, each after those that it reads, the edges, and how many nodes are left out."""

    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    nodes: int
    left_out: int


def picture_of(graph: Any, max_label: int = MAX_LABEL) -> Picture:
    """Return the picture of a graph with `inputs` and `outputs`; longer labels than `max_label` are cut."""
    order = io_toposort(graph.inputs, graph.outputs)
    drawn = _nearest(graph.outputs, order)
    painter = _Painter({variable: n for n, variable in enumerate(graph.inputs)}, drawn, max_label)
    for node in order:
        if node in drawn:
            painter.node(node)
    for number, variable in enumerate(graph.outputs[:MAX_ENDS]):
        painter.output(number, variable)
    if len(graph.outputs) > MAX_ENDS:
        painter.more(len(graph.outputs) - MAX_ENDS, "outputs")
    return Picture(painter.boxes, painter.arrows, len(order), len(order) - len(drawn))


def _nearest(outputs: Sequence[Variable], order: Sequence[Apply]) -> set[Apply]:
    """Return the MAX_DRAWN nodes of `order` with the shortest ways to the outputs."""
    if len(order) <= MAX_DRAWN:
        return set(order)
    known, found = set(order), dict.fromkeys(v.owner for v in outputs if v.owner is not None)
    for node in (queue := list(found)):
        for variable in node.inputs:
            owner = variable.owner
            if owner in known and owner not in found:
                found[owner] = None
                queue.append(owner)
    return set(list(found)[:MAX_DRAWN])


class _Painter:
    """The boxes made so far, and the box that each variable comes from."""

    def __init__(self, inputs: dict[Variable, int], drawn: set[Apply], max_label: int) -> None:
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self._inputs = inputs
        self._drawn = drawn
        self._max_label = max_label
        self._made: dict[Variable | Apply, int] = {}

    def node(self, node: Apply) -> None:
        shown = node.inputs[:MAX_ENDS]
        tails = [self._source(variable) for variable in shown]
        if len(node.inputs) > MAX_ENDS:
            tails.append(self.more(len(node.inputs) - MAX_ENDS, "inputs"))
        held = inner_graph(node.op)
        box = Box("node", self._short(node.op), _title_of(node), None if held is None else node.op)
        self._made[node] = head = self._add(box)
        for number, (tail, variable) in enumerate(zip(tails, node.inputs, strict=False)):
            self._join(tail, head, variable, f", input {number}")

    def more(self, count: int, what: str) -> int:
        """Add a box that stands for `count` others, and return its number."""
        return self._add(Box("omitted", f"… {count} more {what}", f"left out: {count} {what}"))

    def output(self, number: int, variable: Variable) -> None:
        tail = self._source(variable)
        name = (variable.owner and variable.name) or f"o{number}"
        self._join(
            tail,
            self._add(Box("output", self._short(name), f"output {number}: {variable.type}")),
            variable,
            "",
        )

    def _source(self, variable: Variable) -> int:
        """Return the number of the box that `variable` comes from, made if it has none."""
        owner = variable.owner
        if owner is not None and owner in self._drawn and variable not in self._inputs:
            return self._made[owner]
        if isinstance(variable, Constant):  # one box a use
            large = getattr(variable.data, "size", 1) > _MAX_ITEMS
            text = str(variable.type) if large else _one_line(variable)
            return self._add(Box("constant", self._short(text), _cut(f"constant {text}: {variable.type}")))
        if variable not in self._made:
            self._made[variable] = self._add(self._root(variable))
        return self._made[variable]

    def _root(self, variable: Variable) -> Box:
        number = self._inputs.get(variable)
        if number is not None:
            name = variable.name or f"i{number}"
            return Box("input", self._short(name), _cut(f"input {number}, {name}: {variable.type}"))
        if variable.owner is not None:
            return Box("omitted", "…", _cut(f"left out: {_one_line(variable.owner.op)}"))
        return Box("input", self._short(variable), _cut(f"{_one_line(variable)}: {variable.type}"))

    def _add(self, box: Box) -> int:
        self.boxes.append(box)
        return len(self.boxes) - 1

    def _join(self, tail: int, head: int, variable: Variable, where: str) -> None:
        several = variable.owner is not None and len(variable.owner.outputs) > 1
        origin = f"output {variable.index}: " if several else ""
        self.arrows.append(Arrow(tail, head, _cut(f"{origin}{variable.type}{where}")))

    def _short(self, item: Any) -> str:
        text = _one_line(item)
        return text if len(text) <= self._max_label else f"{text[: self._max_label - 1]}…"


def _title_of(node: Apply) -> str:
    lines = [_one_line(node.op)]
    lines += [f"input {n}: {variable.type}" for n, variable in enumerate(node.inputs[:MAX_ENDS])]
    lines += [f"output {n}: {variable.type}" for n, variable in enumerate(node.outputs[:MAX_ENDS])]
    return _cut("\n".join(lines))


def _one_line(item: Any) -> str:
    return " ".join(str(item).split())


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TITLE else f"{text[:_MAX_TITLE]}…"
