"""`dprint`: a graph as a tree of text, one line a use of a variable.

A node whose inputs were printed before is followed by `···`. Where the tree gets deeper than `MAX_INDENT` it goes on
further below at the left margin, so that the text grows with the graph and not with the square of its depth. Graphs
inside of Ops are printed once, below.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from engine.graph.apply import Apply
from engine.graph.frozen import NominalVariable
from engine.graph.variables import Constant, Variable

MAX_INDENT = 64
MAX_ITEMS = 10
"""Constants of more elements are printed as their type alone."""


def dprint(
    graph: Any, depth: int = -1, print_type: bool = False, file: str | TextIO | None = None
) -> str | None:
    """Print `graph`: a variable, a sequence of them, a graph (mutable or frozen) or a compiled function.

    `depth` limits the levels below an output (-1: all); `print_type` adds the types. `file` is where to write: a
    text file, None for standard output, or "str" to get the text back. Refuses (TypeError) anything else.
    """
    text = "\n".join(_Printer(depth, print_type).lines(graph)) + "\n"
    if file == "str":
        return text
    target = sys.stdout if file is None else file
    if isinstance(target, str):
        raise TypeError(
            f"Printing a graph to {file!r}: `file` is a text file, None, or 'str' to get the text back"
        )
    target.write(text)
    return None


def _outputs_and_order(graph: Any) -> tuple[Sequence[Variable], Mapping[Apply, int]]:
    """The variables to print, and the position in the order of execution of each node if there is one."""
    if isinstance(graph, Variable):
        return [graph], {}
    if isinstance(graph, Apply):
        return list(graph.outputs), {}
    if hasattr(graph, "maker"):
        graph = graph.maker.fgraph
    if hasattr(graph, "outputs") and hasattr(graph, "toposort"):
        return list(graph.outputs), {node: position for position, node in enumerate(graph.toposort())}
    if isinstance(graph, Iterable):
        found = [_outputs_and_order(item) for item in graph]
        return [v for outputs, _ in found for v in outputs], {
            n: i for _, order in found for n, i in order.items()
        }
    raise TypeError(
        f"Printing {graph!r}: it is neither a variable, a sequence of variables, a graph nor a function"
    )


class _Printer:
    """Keeps the letters given and the nodes printed, over all parts of one text."""

    def __init__(self, depth: int, print_type: bool) -> None:
        self.depth = depth
        self.print_type = print_type
        self.ids: dict[Variable | Apply, str] = {}
        self.done: set[Apply] = set()
        self.order: Mapping[Apply, int] = {}
        self.inner: dict[Any, Apply] = {}

    def lines(self, graph: Any) -> Iterator[str]:
        outputs, self.order = _outputs_and_order(graph)
        for output in outputs:
            yield from self.tree(output, "", "")
        if self.inner:
            yield from ("", "Inner graphs:")
        printed: set[Any] = set()
        while len(printed) < len(self.inner):
            op, node = next(item for item in self.inner.items() if item[0] not in printed)
            printed.add(op)
            yield from ("", f"{op} [id {self.ids[node]}]")
            for output in inner_graph(op).outputs:
                yield from self.tree(output, " ← ", "   ")

    def tree(self, root: Variable, first: str, following: str) -> Iterator[str]:
        """The lines of `root` (led in by `first`) and of what computes it (by `following`)."""
        sections = [(root, first, following, 0)]
        for variable, lead, indent, level in sections:
            stack = [(variable, lead, indent, level, 0)]
            while stack:
                variable, lead, indent, level, width = stack.pop()
                yield lead + self.label(variable)
                node = variable.owner
                if node is None or not node.inputs or level == self.depth:
                    continue
                if node in self.done:
                    yield f"{indent} └─ ···"
                elif width == MAX_INDENT:
                    yield f"{indent} └─ ··· (continued below)"
                    sections.append((variable, "", "", level))
                else:
                    self.done.add(node)
                    stack.extend(reversed(_branches(node, indent, level + 1, width + 1)))

    def label(self, variable: Variable) -> str:
        node = variable.owner
        text = _text_of(variable)
        if self.print_type and not isinstance(variable, NominalVariable):
            text += f" <{variable.type}>"
        text += f" [id {self.id_of(variable if node is None else node)}]"
        if node is None:
            return text
        if inner_graph(node.op) is not None:
            self.inner.setdefault(node.op, node)
        if variable.name is not None:
            text += f" {variable.name!r}"
        return f"{text} {self.order[node]}" if node in self.order else text

    def id_of(self, item: Variable | Apply) -> str:
        if item not in self.ids:
            self.ids[item] = _letters(len(self.ids))
        return self.ids[item]


def inner_graph(op: Any) -> Any:
    """The graph that `op`, or the scalar Op that it applies, holds; None if there is none."""
    return getattr(op, "fgraph", None) or getattr(getattr(op, "scalar_op", None), "fgraph", None)


def _branches(node: Apply, indent: str, level: int, width: int) -> list[tuple[Variable, str, str, int, int]]:
    last = len(node.inputs) - 1
    return [
        (
            variable,
            f"{indent} {'└' if i == last else '├'}─ ",
            f"{indent} {' ' if i == last else '│'} ",
            level,
            width,
        )
        for i, variable in enumerate(node.inputs)
    ]


def _text_of(variable: Variable) -> str:
    node = variable.owner
    if node is not None:
        return str(node.op) if len(node.outputs) == 1 else f"{node.op}.{variable.index}"
    if isinstance(variable, Constant) and getattr(variable.data, "size", 1) > MAX_ITEMS:
        return f"<{variable.type}>"
    return " ".join(str(variable).split())


def _letters(number: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    letters = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters
