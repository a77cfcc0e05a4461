"""The first difference of two graphs in the adapter's keys, for people who ask about a miss.

The grammar is that of graphs.py and values.py, where each Op, type, value and class row that is written on
its own starts with HASH_VERSION. Neither PyTensor nor anything else is imported for what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from cachegraph.fingerprint.decoder import Decoded, check_version, decode_value, read_origin
from cachegraph.fingerprint.primitives import HASH_VERSION, Reader, digest
from cachegraph.graph_difference import (
    DecodedGraph,
    DecodedNode,
    DecodedOp,
    GraphReader,
    Property,
    elements,
    op_differences,
)

_RELEASE = bytes((HASH_VERSION,)) + b"r"


def inner_graph_difference(wanted: bytes, stored: bytes) -> str:
    """Return the first difference of two Ops whose inner graphs are looked up, or of their types."""
    (one, types), (other, other_types) = _inner(wanted), _inner(stored)
    found = next(op_differences(one, other), None)
    return found or f"{one} of {', '.join(types)}, stored of {', '.join(other_types)}"


def _inner(encoding: bytes) -> tuple[DecodedOp, list[str]]:
    reader = _reader(encoding)
    op, types = _read_op(reader.nested()), []
    while reader.peek(1):
        types.append(_read_type(reader.nested()))
    return op, types


def _reader(encoding: bytes) -> Reader:
    return Reader(encoding, "reading an encoded graph of PyTensor", _TAGS)


def _whole_graph(encoding: bytes) -> DecodedGraph:
    reader = _reader(encoding)
    graph = _read_graph(reader)
    reader.end()
    return graph


def _read_graph(reader: Reader) -> DecodedGraph:
    graph = DecodedGraph.read(reader, _read_type, _read_op, lambda row, _types: _read_constant(row))
    return _tagged(reader, graph)


graph_difference = GraphReader(_whole_graph)
"""Compares the graphs of two function keys; raises InvalidEncoding on what graphs.py did not write."""


def _tagged(reader: Reader, graph: DecodedGraph) -> DecodedGraph:
    """Return `graph` with the tags of variables shown in their types."""
    types, first_of = list(graph.types), []
    position = len(graph.inputs)
    for node in graph.nodes:
        first_of.append(position)
        position += len(node.types)
    for _ in range(reader.uint()):
        kind, number = reader.take(1), reader.uint()
        variable = number // 2 if kind == b"v" else first_of[number]
        types[variable] += f" tagged {_read_value(reader).text}"
    remaining = iter(types)
    inputs = list(islice(remaining, len(graph.inputs)))
    nodes = [
        DecodedNode(node.op, node.inputs, list(islice(remaining, len(node.types)))) for node in graph.nodes
    ]
    return DecodedGraph(inputs, nodes, graph.outputs, graph.constants)


def _read_type(reader: Reader) -> str:
    name, code = _read_class(reader)
    if reader.take(1) == b"v":
        return f"{name}{code}({_read_value(reader).text})"
    dtype = reader.text()
    extents = [reader.uint() for _ in range(reader.uint())]
    shape = ", ".join("?" if extent == 0 else str(extent - 1) for extent in extents)
    return f"{dtype} ({shape}{',' if len(extents) == 1 else ''})" if extents else dtype


def _read_class(reader: Reader) -> tuple[str, str]:
    """Return the name of a class, and a digest of its code if that describes it."""
    if reader.peek(2) == _RELEASE:
        reader.take(2)
        _module, name = reader.text(), reader.text()
        read_origin(reader)
        return name, ""
    if reader.take(1) != b"c":
        raise reader.error("a class", "something else")
    return "class", f" of code {digest(reader.bytes()).hex()[:12]}"


def _read_op(reader: Reader) -> DecodedOp:
    check_version(reader)
    name, code = _read_class(reader)
    if code:
        return DecodedOp(name + code, {"attributes": decode_value(reader)}, name + code)
    properties = {reader.text(): _read_property(reader) for _ in range(reader.uint())}
    reader.end()
    inner = ", ".join(str(value) for value in properties.values() if isinstance(value, DecodedOp))
    shown = f"{name}{{{inner}}}" if inner else name
    return DecodedOp(shown, properties, shown)


def _read_property(reader: Reader) -> Property:
    read = _PROPERTIES.get(reader.peek(1))
    if read is None:
        return decode_value(reader)
    reader.take(1)
    return read(reader.nested())


_PROPERTIES: dict[bytes, Callable[[Reader], Property]] = {b"O": _read_op, b"Y": _read_type, b"G": _read_graph}


def _read_constant(reader: Reader) -> str:
    type_ = _read_type(reader.nested())
    if reader.take(1) == b"v":
        content = _read_value(reader).text
    else:
        _read_layout(reader)
        content = _read_array(reader)
    tags = f" tagged {_read_value(reader).text}" if reader.peek(1) else ""
    return f"constant {content} {type_}{tags}"


def _read_layout(reader: Reader) -> None:
    if reader.take(1) == b"A":
        _read_value(reader)


def _read_array(reader: Reader) -> str:
    """Return the numbers of an array as text."""
    check_version(reader)
    tag, dtype = reader.take(1), reader.text()
    for _ in range(reader.uint()):
        reader.uint()
    if tag == b"h":
        return f"of digest {reader.take(32).hex()[:12]}"
    if tag != b"a":
        raise reader.error("an array", repr(tag))
    return elements(reader.bytes(), dtype)


def _read_value(reader: Reader) -> Decoded:
    check_version(reader)
    return decode_value(reader)


def _value_of(reader: Reader) -> Decoded:
    return _read_value(reader.nested())


def _object(reader: Reader) -> Decoded:
    """Read another object of PyTensor's: its attributes are its parts."""
    inner = reader.nested()
    if inner.peek(1) == b"-":
        inner.take(1)
        return Decoded(inner.text())
    if inner.peek(1) == b"+":
        inner.take(1)
    op = _read_op(inner)
    return Decoded(op.shown, tuple(_parts(op)))


def _parts(op: DecodedOp) -> Iterator[tuple[str, Decoded]]:
    for name, value in op.properties.items():
        yield f".{name}", value if isinstance(value, Decoded) else Decoded(str(value))


def _graph(reader: Reader) -> Decoded:
    content = reader.bytes()
    return Decoded(f"graph of {len(_whole_graph(content).nodes)} nodes, digest {digest(content).hex()[:12]}")


def _function(reader: Reader) -> Decoded:
    inner = reader.nested()
    check_version(inner)
    return Decoded(f"function {inner.text()}.{inner.text()}")


_TAGS = {
    b"O": _object,
    b"J": _object,
    b"Y": lambda reader: Decoded(_read_type(reader.nested())),
    b"K": lambda reader: Decoded(_read_constant(reader.nested())),
    b"G": _graph,
    b"H": _function,
    **dict.fromkeys((b"Z", b"Q", b"U", b"V", b"A"), _value_of),
}
"""Readers of what follows the tags that values.py adds to those of values."""
