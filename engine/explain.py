"""Says where two encoded graphs differ first, for people who ask why a function was not found in the cache.

The grammar is that of encoding.py. No Op and no Type is made of what is read: it may have been written by another release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from cachegraph.fingerprint.decoder import Decoded, check_version, decode_value, first_difference
from cachegraph.fingerprint.hasher import Reader, digest

_MOST_ELEMENTS = 4


@dataclass(frozen=True)
class _Op:
    """An Op that was read: its class, and its properties, each a value, an Op, a type's text or a graph."""

    name: str
    properties: dict[str, Decoded | _Op | str | _Graph]

    def __str__(self) -> str:
        inner = ", ".join(
            str(value) if isinstance(value, _Op) else f"{name}={_text(value)}"
            for name, value in self.properties.items()
        )
        return f"{self.name}{{{inner}}}" if inner else self.name


@dataclass(frozen=True)
class _Node:
    """A node that was read; its inputs as numbers of variables."""

    op: _Op
    inputs: list[int]
    types: list[str]


@dataclass
class _Graph:
    """A graph that was read: types of its inputs, nodes, outputs as numbers of variables, constants as text."""

    inputs: list[str]
    nodes: list[_Node]
    outputs: list[int]
    constants: list[str]
    places: list[str] = field(init=False)
    types: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.places = [f"input {k} of the graph" for k in range(len(self.inputs))]
        self.types = list(self.inputs)
        for number, node in enumerate(self.nodes):
            several = len(node.types) > 1
            self.places += [
                f"output {k} of node {number}" if several else f"node {number}"
                for k in range(len(node.types))
            ]
            self.types += node.types

    def place(self, variable: int) -> str:
        """Where a variable comes from, in words."""
        constant, index = variable % 2, variable // 2
        return self.constants[index] if constant else self.places[index]

    def type(self, variable: int) -> str:
        """The type of a variable; empty for a constant, whose text has it."""
        return "" if variable % 2 else self.types[variable // 2]


def graph_difference(wanted: bytes, stored: bytes) -> str:
    """The first node, input or output in which two encodings by `engine.keys.encode_graph` differ, in one line.

    Raises InvalidEncoding, IndexError and KeyError on what encode_graph would not have written.
    """
    found = next(_differences(_read_encoding(wanted), _read_encoding(stored)), None)
    return found or "the graphs are the same; only how they are written differs"


def _differences(wanted: _Graph, stored: _Graph) -> Iterator[str]:
    for number, (one, other) in enumerate(zip(wanted.nodes, stored.nodes, strict=False)):
        for difference in _node_differences(wanted, one, stored, other):
            yield f"node {number}: {difference}"
    yield from _length_difference("nodes", len(wanted.nodes), len(stored.nodes))
    yield from _length_difference("inputs", len(wanted.inputs), len(stored.inputs))
    for number, (mine, its) in enumerate(zip(wanted.inputs, stored.inputs, strict=False)):
        if mine != its:
            yield f"input {number} of the graph: {mine}, stored {its}"
    yield from _length_difference("outputs", len(wanted.outputs), len(stored.outputs))
    for number, (a, b) in enumerate(zip(wanted.outputs, stored.outputs, strict=False)):
        if wanted.place(a) != stored.place(b):
            yield f"output {number} of the graph: {wanted.place(a)}, stored {stored.place(b)}"


def _node_differences(wanted: _Graph, one: _Node, stored: _Graph, other: _Node) -> Iterator[str]:
    yield from _op_differences(one.op, other.op)
    yield from (
        f"{one.op}, {difference}"
        for difference in _length_difference("inputs", len(one.inputs), len(other.inputs))
    )
    for number, (a, b) in enumerate(zip(one.inputs, other.inputs, strict=False)):
        place, other_place = wanted.place(a), stored.place(b)
        if place != other_place:
            yield f"{one.op}, input {number}: {place}, stored {other_place}"
        elif wanted.type(a) != stored.type(b):
            yield f"{one.op}, input {number}: {wanted.type(a)}, stored {stored.type(b)}"
    for number, (mine, its) in enumerate(zip(one.types, other.types, strict=False)):
        if mine != its:
            yield f"{one.op}, output {number}: {mine}, stored {its}"


def _op_differences(one: _Op, other: _Op) -> Iterator[str]:
    if one.name != other.name or one.properties.keys() != other.properties.keys():
        yield f"{one}, stored {other}"
        return
    for name, mine in one.properties.items():
        its = other.properties[name]
        if mine == its:
            continue
        if isinstance(mine, _Graph) and isinstance(its, _Graph):
            yield from (f"{one}, inner graph: {difference}" for difference in _differences(mine, its))
        elif isinstance(mine, Decoded) and isinstance(its, Decoded):
            yield f"{one}, {name}: {first_difference(mine, its)}"
        else:
            yield f"{one}, stored {other}"


def _length_difference(what: str, wanted: int, stored: int) -> Iterator[str]:
    if wanted != stored:
        yield f"{wanted} {what}, stored {stored}"


def _read_encoding(encoding: bytes) -> _Graph:
    reader = Reader(encoding, "reading an encoded graph")
    check_version(reader)
    reader.byte()  # ENGINE_VERSION: another one is another scheme, and another reader then fails below
    graph = _read_graph(reader)
    reader.end()
    return graph


def _read_graph(reader: Reader) -> _Graph:
    types = [_read_type(row) for row in _rows(reader)]
    ops = [_read_op(row) for row in _rows(reader)]
    constants = [_read_constant(row, types) for row in _rows(reader)]
    inputs = [types[number] for number in _numbers(reader)]
    nodes = [_read_node(reader, ops, types) for _ in range(reader.uint())]
    return _Graph(inputs, nodes, _numbers(reader), constants)


def _rows(reader: Reader) -> list[Reader]:
    return [Reader(reader.bytes(), "reading a row of an encoded graph") for _ in range(reader.uint())]


def _numbers(reader: Reader) -> list[int]:
    return [reader.uint() for _ in range(reader.uint())]


def _read_node(reader: Reader, ops: list[_Op], types: list[str]) -> _Node:
    op, inputs = ops[reader.uint()], _numbers(reader)
    return _Node(op, inputs, [types[number] for number in _numbers(reader)])


def _read_type(reader: Reader) -> str:
    _module, name = reader.text(), reader.text()
    check_version(reader)
    properties = [value for _, value in decode_value(reader).parts]
    reader.end()
    texts = [value.text for value in properties]
    if name != "TensorType" or len(texts) != 2:
        return f"{name}({', '.join(texts)})"
    dtype, shape = texts[0].strip("'"), texts[1].replace("None", "?")
    return dtype if shape == "()" else f"{dtype} {shape}"


def _read_op(reader: Reader) -> _Op:
    module, name = reader.text(), reader.text()
    if not module:  # a user's: all of it is one definition
        check_version(reader)
        code, registered = decode_value(reader), reader.bytes()
        reader.end()
        around = {"registered with numba": Decoded(digest(registered).hex()[:12])} if registered else {}
        return _Op(name, {"code": code, **around})
    if module.startswith("engine.scalar."):
        name = name.lower()  # as printed graphs have it: Elemwise{exp}
    check_version(reader)
    properties = {reader.text(): _read_property(reader) for _ in range(reader.uint())}
    reader.end()
    return _Op(name, properties)


def _read_property(reader: Reader) -> Decoded | _Op | str | _Graph:
    kind = reader.take(1)
    if kind == b"v":
        return decode_value(reader)
    inner = Reader(reader.bytes(), "reading a property of an encoded Op")
    if kind == b"o":
        return _read_op(inner)
    if kind == b"t":
        return _read_type(inner)
    if kind == b"g":
        return _read_graph(inner)
    raise reader.error("the kind of a property", repr(kind))


def _read_constant(reader: Reader, types: list[str]) -> str:
    kind, type_ = reader.take(1), types[reader.uint()]
    if kind == b"d":
        return f"data {type_}"
    if kind == b"h":
        return f"constant of digest {reader.take(32).hex()[:12]} {type_}"
    return f"constant {_elements(reader.bytes(), type_)} {type_}"


def _elements(content: bytes, type_: str) -> str:
    """The numbers of a constant: the first few, and how many there are."""
    values = np.frombuffer(content, type_.split(" ")[0]).tolist()
    if len(values) == 1:
        return str(values[0])
    shown = ", ".join(map(str, values[:_MOST_ELEMENTS]))
    return f"[{shown}]" if len(values) <= _MOST_ELEMENTS else f"[{shown}, ... {len(values)} in all]"


def _text(value: Decoded | str | _Graph) -> str:
    if isinstance(value, _Graph):
        return f"{len(value.nodes)} nodes"
    return value.text if isinstance(value, Decoded) else value
