"""The difference between two encoded graphs, for people who ask why a function was a miss.

The grammar is that of graph_encoding.py. Reading makes no Op and no type: the encoding may be another
release's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cachegraph.fingerprint.decoder import Decoded, check_version, decode_value
from cachegraph.fingerprint.primitives import Reader, digest
from cachegraph.graph_difference import DecodedGraph, DecodedOp, GraphReader, Property, elements


def _read_encoding(encoding: bytes) -> DecodedGraph:
    reader = Reader(encoding, "reading an encoded graph")
    check_version(reader)
    reader.byte()  # ENGINE_VERSION: another one is another scheme, and another reader then fails below
    graph = _read_graph(reader)
    reader.end()
    return graph


graph_difference = GraphReader(_read_encoding)
"""Says in what two encodings by `engine.compiling.key.encode_graph` differ; raises InvalidEncoding and
KeyError on what that would not have written."""


def _read_graph(reader: Reader) -> DecodedGraph:
    return DecodedGraph.read(reader, _read_type, _read_op, _read_constant)


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


def _read_op(reader: Reader) -> DecodedOp:
    module, name = reader.text(), reader.text()
    if not module:  # a user's: all of it is one definition
        check_version(reader)
        code, registered = decode_value(reader), reader.bytes()
        reader.end()
        around = {"registered with numba": Decoded(digest(registered).hex()[:12])} if registered else {}
        return _op(name, {"code": code, **around})
    if module.startswith("engine.scalar."):
        name = name.lower()  # as printed graphs have it: Elemwise{exp}
    check_version(reader)
    properties = {reader.text(): _read_property(reader) for _ in range(reader.uint())}
    reader.end()
    return _op(name, properties)


def _read_property(reader: Reader) -> Property:
    kind = reader.take(1)
    if kind == b"v":
        return decode_value(reader)
    inner = reader.nested()
    if kind == b"o":
        return _read_op(inner)
    if kind == b"t":
        return _read_type(inner)
    if kind == b"g":
        return _read_graph(inner)
    raise reader.error("the kind of a property", repr(kind))


def _read_constant(reader: Reader, types: Sequence[str]) -> str:
    kind, type_ = reader.take(1), types[reader.uint()]
    if kind == b"d":
        return f"data {type_}"
    if kind == b"h":
        return f"constant of digest {reader.take(32).hex()[:12]} {type_}"
    return f"constant {elements(reader.bytes(), type_.split(' ')[0])} {type_}"


def _op(name: str, properties: Mapping[str, Property]) -> DecodedOp:
    inner = ", ".join(
        str(value) if isinstance(value, DecodedOp) else f"{key}={_text(value)}"
        for key, value in properties.items()
    )
    return DecodedOp(name, properties, f"{name}{{{inner}}}" if inner else name)


def _text(value: Decoded | str | DecodedGraph) -> str:
    if isinstance(value, DecodedGraph):
        return f"{len(value.nodes)} nodes"
    return value.text if isinstance(value, Decoded) else value
