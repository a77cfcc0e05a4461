"""The first difference of two graphs that were read from keys, in one line, for people who ask about a
miss.

The writer of a kind of graph reads it back into these classes. No Op and no Type is made of what is read:
another release may have written it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import iter_unpack

from cachegraph.fingerprint.decoder import Decoded
from cachegraph.fingerprint.primitives import Reader
from cachegraph.fingerprint.value_difference import first_difference
from cachegraph.graph_codec import read_graph
from cachegraph.named_tuples import NamedTuple

_MOST_ELEMENTS = 4
_DTYPES = "bool float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
_FORMATS = dict(zip(_DTYPES, "?fdbhiqBHIQ", strict=True))
"""The formats of the module struct for the names of dtypes."""


class DecodedOp(NamedTuple):
    """An Op that was read: its class, its properties, and how it is shown."""

    name: str
    properties: Mapping[str, Property]
    shown: str

    def __str__(self) -> str:
        return self.shown


class DecodedNode(NamedTuple):
    """A node that was read: its Op, its inputs as numbers of variables, and the types of its outputs."""

    op: DecodedOp
    inputs: list[int]
    types: list[str]


class DecodedGraph:
    """A graph that was read: types of its inputs, nodes, outputs as numbers of variables, constants as text.

    Variables are numbered as in graph_codec.py.
    """

    def __init__(
        self, inputs: list[str], nodes: list[DecodedNode], outputs: list[int], constants: list[str]
    ) -> None:
        self.inputs = inputs
        self.nodes = nodes
        self.outputs = outputs
        self.constants = constants
        self.origins = [f"input {k} of the graph" for k in range(len(inputs))]
        self.types = list(inputs)
        for number, node in enumerate(nodes):
            several = len(node.types) > 1
            self.origins += [
                f"output {k} of node {number}" if several else f"node {number}"
                for k in range(len(node.types))
            ]
            self.types += node.types
        self.names = [""] * len(self.types)

    @classmethod
    def read(
        cls,
        reader: Reader,
        read_type: Callable[[Reader], str],
        read_op: Callable[[Reader], DecodedOp],
        read_constant: Callable[[Reader, Sequence[str]], str],
    ) -> DecodedGraph:
        """Return the graph that follows; raises as graph_codec.read_graph does."""
        inputs, nodes, outputs, constants = read_graph(reader, read_type, read_op, read_constant)
        return cls(inputs, [DecodedNode(*node) for node in nodes], outputs, constants)

    def name(self, names: Sequence[str]) -> None:
        """Show variables with these names, in the order of their numbers; empty for one without a name."""
        self.names[: len(names)] = names[: len(self.names)]

    def shown(self, variable: int) -> str:
        """Return where a variable comes from, and its name if it has one."""
        place = self.place(variable)
        name = "" if variable % 2 else self.names[variable // 2]
        return f"{place} ({name})" if name else place

    def shown_node(self, number: int) -> str:
        """Return a node's number, and the name of its result or of the first named result after it."""
        name = self._name_from(number)
        return f"node {number} ({name})" if name else f"node {number}"

    def _name_from(self, number: int) -> str:
        position = len(self.inputs) + sum(len(node.types) for node in self.nodes[:number])
        reached: set[int] = set()
        for node in self.nodes[number:]:
            outputs = range(position, position + len(node.types))
            if not reached or reached.intersection(node.inputs):
                named = next((self.names[output] for output in outputs if self.names[output]), "")
                if named:
                    return named if len(reached) == 0 else f"for {named}"
                reached.update(2 * output for output in outputs)
            position += len(node.types)
        return ""

    def place(self, variable: int) -> str:
        """Return where a variable comes from, in words."""
        constant, index = variable % 2, variable // 2
        return self.constants[index] if constant else self.origins[index]

    def type(self, variable: int) -> str:
        """Return the type of a variable; empty for a constant, whose text has it."""
        return "" if variable % 2 else self.types[variable // 2]


Property = Decoded | DecodedOp | str | DecodedGraph
"""A property of an Op: a value, an Op, the text of a type, or a graph."""


class GraphReader:
    """A comparison of two graphs that `read` reads; raises what that raises, IndexError for no graph."""

    def __init__(self, read: Callable[[bytes], DecodedGraph]) -> None:
        self.read = read

    def __call__(
        self, wanted: bytes, stored: bytes, names: Sequence[str] = (), stored_names: Sequence[str] = ()
    ) -> str:
        """Return the first node, input or output in which they differ, with names of variables."""
        one, other = self.read(wanted), self.read(stored)
        one.name(names)
        other.name(stored_names)
        return difference(one, other)

    def distance(self, wanted: bytes, stored: bytes) -> int:
        """Return how many nodes one of them has that the other lacks, wherever they are."""
        one, other = (
            Counter(map(_signature, _described(self.read(encoding)))) for encoding in (wanted, stored)
        )
        return max((one - other).total(), (other - one).total())


def _described(graph: DecodedGraph) -> Iterator[tuple[object, ...]]:
    """Yield for each node its Op, the types and constants of its inputs, and its types, without its place."""
    yield "interface", *graph.inputs
    for node in graph.nodes:
        given = (graph.type(variable) or graph.place(variable) for variable in node.inputs)
        yield node.op, *given, "->", *node.types


def _signature(described: tuple[object, ...]) -> str:
    return "\n".join(_op_text(part) if isinstance(part, DecodedOp) else str(part) for part in described)


def _op_text(op: DecodedOp) -> str:
    properties = (f"{name}={_property_text(value)}" for name, value in op.properties.items())
    return f"{op.name}({', '.join(properties)})"


def _property_text(value: Property) -> str:
    if isinstance(value, DecodedGraph):
        return "; ".join(map(_signature, _described(value)))
    return _op_text(value) if isinstance(value, DecodedOp) else repr(value)


def difference(wanted: DecodedGraph, stored: DecodedGraph) -> str:
    """Return the first node, input or output in which two graphs differ; raises IndexError if invalid."""
    found = next(_differences(wanted, stored), None)
    return found or "the graphs are the same; only how they are written differs"


def _differences(wanted: DecodedGraph, stored: DecodedGraph) -> Iterator[str]:
    for number, (one, other) in enumerate(zip(wanted.nodes, stored.nodes, strict=False)):
        for found in _node_differences(wanted, one, stored, other):
            yield f"{wanted.shown_node(number)}: {found}"
    yield from _length_difference("nodes", len(wanted.nodes), len(stored.nodes))
    yield from _length_difference("inputs", len(wanted.inputs), len(stored.inputs))
    for number, (mine, its) in enumerate(zip(wanted.inputs, stored.inputs, strict=False)):
        if mine != its:
            yield f"{wanted.shown(2 * number)}: {mine}, stored {its}"
    yield from _length_difference("outputs", len(wanted.outputs), len(stored.outputs))
    for number, (a, b) in enumerate(zip(wanted.outputs, stored.outputs, strict=False)):
        if wanted.place(a) != stored.place(b):
            yield f"output {number} of the graph: {wanted.shown(a)}, stored {stored.shown(b)}"


def _node_differences(
    wanted: DecodedGraph, one: DecodedNode, stored: DecodedGraph, other: DecodedNode
) -> Iterator[str]:
    yield from op_differences(one.op, other.op)
    yield from (
        f"{one.op}, {found}" for found in _length_difference("inputs", len(one.inputs), len(other.inputs))
    )
    for number, (a, b) in enumerate(zip(one.inputs, other.inputs, strict=False)):
        place, other_place = wanted.place(a), stored.place(b)
        if place != other_place:
            yield f"{one.op}, input {number}: {wanted.shown(a)}, stored {stored.shown(b)}"
        elif wanted.type(a) != stored.type(b):
            yield f"{one.op}, input {number}: {wanted.type(a)}, stored {stored.type(b)}"
    for number, (mine, its) in enumerate(zip(one.types, other.types, strict=False)):
        if mine != its:
            yield f"{one.op}, output {number}: {mine}, stored {its}"


def op_differences(one: DecodedOp, other: DecodedOp) -> Iterator[str]:
    """Yield the properties in which two Ops differ, a line each."""
    if one.name != other.name or one.properties.keys() != other.properties.keys():
        yield f"{one}, stored {other}"
        return
    for name, mine in one.properties.items():
        its = other.properties[name]
        if mine == its:
            continue
        if isinstance(mine, DecodedGraph) and isinstance(its, DecodedGraph):
            yield from (f"{one}, inner graph: {found}" for found in _differences(mine, its))
        elif isinstance(mine, DecodedOp) and isinstance(its, DecodedOp) and mine.name == its.name:
            yield from (f"{one}, {name}: {found}" for found in op_differences(mine, its))
        elif isinstance(mine, Decoded) and isinstance(its, Decoded):
            yield f"{one}, {name}: {first_difference(mine, its)}"
        else:
            yield f"{one}, stored {other}"


def _length_difference(what: str, wanted: int, stored: int) -> Iterator[str]:
    if wanted != stored:
        yield f"{wanted} {what}, stored {stored}"


def elements(content: bytes, dtype: str) -> str:
    """Return the numbers of an array as text: the first few, and how many there are."""
    values = _values(content, dtype)
    if len(values) == 1:
        return str(values[0])
    shown = ", ".join(map(str, values[:_MOST_ELEMENTS]))
    return f"[{shown}]" if len(values) <= _MOST_ELEMENTS else f"[{shown}, ... {len(values)} in all]"


def _values(content: bytes, dtype: str) -> list[object]:
    known = _FORMATS.get(dtype)
    if known is not None:
        return [value for (value,) in iter_unpack(f"={known}", content)]
    import numpy as np  # 100 ms, for complex numbers and their kin

    found: list[object] = np.frombuffer(content, dtype).tolist()
    return found
