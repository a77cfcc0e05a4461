"""`as_string`: a graph as nested expressions, `Op1(x, *1 -> Op2(y), *1)`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from engine.graph.apply import Apply
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable


def op_and_arguments(node: Apply, arguments: Sequence[str]) -> str:
    """Return `Op(argument, ...)`."""
    return f"{node.op}({', '.join(arguments)})"


def as_string(
    inputs: Iterable[Variable],
    outputs: Sequence[Variable],
    leaf_formatter: Callable[[Variable], str] = str,
    node_formatter: Callable[[Apply, Sequence[str]], str] = op_and_arguments,
) -> list[str]:
    """Return a text for each of `outputs`, whose leaves are `inputs` and variables without an owner.

    A node that several nodes or outputs use is written `*n -> ...` the first time, and `*n` afterwards, with
    the position of an output of several: `*1::0`.
    """
    given = frozenset(inputs)
    order = list(io_toposort(given, outputs))
    uses = Counter(variable.owner for node in order for variable in node.inputs if variable not in given)
    uses.update(variable.owner for variable in outputs if variable not in given)
    repeated = {node: f"*{n}" for n, node in enumerate([node for node in order if uses[node] > 1], 1)}
    writer = _ExpressionWriter(given, repeated, leaf_formatter, node_formatter)
    return [writer.text_of(output) for output in outputs]


class _ExpressionWriter:
    """The state of a text: the nodes that were opened."""

    def __init__(
        self,
        given: Set[Variable],
        repeated: Mapping[Apply, str],
        leaf_formatter: Callable[[Variable], str],
        node_formatter: Callable[[Apply, Sequence[str]], str],
    ) -> None:
        self.given = given
        self.repeated = repeated
        self.leaf_formatter = leaf_formatter
        self.node_formatter = node_formatter
        self.seen: set[Apply] = set()

    def text_of(self, output: Variable) -> str:
        """Return the text of `output`; nodes are opened in the order in which they are read."""
        arguments: list[str] = []
        opened: list[tuple[Apply, list[str]]] = []
        self.open(output, arguments, opened)
        while opened:
            node, found = opened[-1]
            if len(found) < len(node.inputs):
                self.open(node.inputs[len(found)], found, opened)
                continue
            opened.pop()
            text = self.node_formatter(node, found)
            text = f"{self.repeated[node]} -> {text}" if node in self.repeated else text
            (opened[-1][1] if opened else arguments).append(text)
        return arguments[0]

    def open(self, variable: Variable, arguments: list[str], opened: list[tuple[Apply, list[str]]]) -> None:
        """Add the text of a leaf or of a node that was opened before to `arguments`; open another node."""
        node = variable.owner
        if node is None or variable in self.given:
            arguments.append(self.leaf_formatter(variable))
        elif node in self.seen:
            place = "" if len(node.outputs) == 1 else f"::{variable.index}"
            arguments.append(f"{self.repeated[node]}{place}")
        else:
            self.seen.add(node)
            opened.append((node, []))
