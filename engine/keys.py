"""The key of a function: its canonical description, which its cache entry is found by.

The encoding of a frozen graph (`uint`, `bytes` and `text` as in cachegraph/fingerprint/hasher.py):

    graph    := HASH_VERSION(1 byte) ENGINE_VERSION(1 byte) body
    body     := table(type) table(op) table(constant) uint(n) type-number* uint(n) node* uint(n) variable*
    table    := uint(n) bytes*
    node     := op-number uint(n) variable* uint(n) type-number*
    variable := uint: 2 k for variable k (inputs first, then the outputs of each node in turn), 2 j + 1 for constant j
    type     := text(module) text(qualname) HASH_VERSION(1 byte) value(properties as a tuple)
    op       := text(module) text(qualname) uint(n) (text(name) property)*
    property := "v" value | "o" bytes(op) | "t" bytes(type) | "g" bytes(body)
    constant := "c" type-number bytes(value in C order) | "d" type-number

Nodes come in the order that structure gives: depth first from the outputs; or in that of execution, where it is part of
the graph. Types and Ops are numbered as they are met, equal ones once. Names of variables, tags and how the graph was built are not in it. A constant of more than 32
elements is data ("d"): its numbers are not identity, only which of the constants it is. Graphs within Ops have no data:
all of their constants are identity ("c"), and so is what the graph around them has of these.

Version history
    1  first
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.hasher import HASH_VERSION, Encoder, digest, encode, pack_uint
from cachegraph.key import CacheKey
from cachegraph.toolchain import check_unchanged, source_digest
from engine.backend.keys import backend_code, encode_toolchain
from engine.graph.frozen import FrozenApply, FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.props import ByProps
from engine.graph.types import Type
from engine.graph.variables import Constant, Variable
from engine.tensor.type import is_data

ENGINE_VERSION = 1
_ROOT = Path(os.path.dirname(os.path.abspath(__file__)))
_IMPORTED = time.time()


def function_key(
    graph: FrozenFunctionGraph, interface: object, rewrites: object, options: object
) -> CacheKey:
    """The key of a compiled function: its graph before rewriting, and all else that decides what it becomes.

    `interface`, `rewrites` and `options` are plain values. Raises Unfingerprintable, with the path to what has no
    canonical encoding, and SourceError if the engine's source cannot be read, or is not what was imported.
    """
    parts = {
        "scheme": encode(("function", ENGINE_VERSION)),
        "graph": encode_graph(graph),
        "interface": encode(interface),
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": encode_toolchain(),
        # A program runs on any CPU, but names kernels of one architecture and system.
        "target": encode((sys.platform, platform.machine())),
    }
    return CacheKey.build("function", parts)


@cache
def engine_code() -> bytes:
    """The digest of the engine's source: editing an implementation is a miss.

    Raises SourceError if it cannot be read, or was changed since it was imported.
    """
    digests = source_digest(_ROOT), backend_code()
    check_unchanged(_ROOT, _IMPORTED)
    return digests[0]


def op_key(graph: FrozenFunctionGraph, rewrites: object, options: object) -> CacheKey:
    """The key of what `graph`, which an Op holds, becomes when it is rewritten with all of its inputs protected; all of
    its constants are identity. Which Op holds it does not matter.

    Raises Unfingerprintable, with the path to what has no canonical encoding.
    """
    parts = {
        "scheme": encode(("op", ENGINE_VERSION)),
        "graph": bytes((HASH_VERSION, ENGINE_VERSION)) + _inner_body(graph),
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": encode_toolchain(),
    }
    return CacheKey.build("op", parts)


def callee_key(graph: FrozenFunctionGraph, options: object) -> CacheKey:
    """The key of a function that a callback calls: `graph` is compiled as it is, and all of its constants are identity.

    Raises as function_key does.
    """
    parts = {
        "scheme": encode(("called function", ENGINE_VERSION)),
        "graph": bytes((HASH_VERSION, ENGINE_VERSION)) + _inner_body(graph),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": encode_toolchain(),
        "target": encode((sys.platform, platform.machine())),
    }
    return CacheKey.build("function", parts)


def all_constants(graph: FrozenFunctionGraph) -> frozenset[Constant]:
    """The large constants of `graph` and of the graphs within it, at all depths."""
    return inner_constants(graph).union(_large_constants(graph))


def data_constants(graph: FrozenFunctionGraph) -> list[Constant]:
    """The data of `graph`, in the order in which its encoding numbers constants; none that `inner_constants` has."""
    inner = inner_constants(graph)
    return [v for v in _large_constants(graph) if v not in inner]


def inner_constants(graph: FrozenFunctionGraph) -> frozenset[Constant]:
    """The large constants of the graphs that Ops of `graph` hold, at all depths. They are identity, not data.

    So is what `graph` itself has of them: were it data, a program could take the one for the other.
    """
    return graph.computed("inner_constants", _inner_constants)


def _inner_constants(graph: FrozenFunctionGraph) -> frozenset[Constant]:
    found: set[Constant] = set()
    for op in dict.fromkeys([node.op for node in graph.nodes]):
        for inner in _inner_graphs(op):
            found.update(_large_constants(inner), inner_constants(inner))
    return frozenset(found)


def _inner_graphs(op: Op) -> Iterator[FrozenFunctionGraph]:
    held = getattr(op, "fgraph", None)
    if isinstance(held, FrozenFunctionGraph):
        yield held
    for value in op.key_props().values() if op.__props__ is not None else ():
        if isinstance(value, FrozenFunctionGraph):
            yield value
        elif isinstance(value, Op):
            yield from _inner_graphs(value)


def _large_constants(graph: FrozenFunctionGraph) -> list[Constant]:
    every = [*(variable for node in graph.nodes for variable in node.inputs), *graph.outputs]
    return [v for v in dict.fromkeys(every) if isinstance(v, Constant) and is_data(v)]


def fingerprint_graph(graph: FrozenFunctionGraph) -> bytes:
    """The digest of the canonical encoding of `graph`, kept with it: 16 bytes; raises Unfingerprintable."""
    return graph.computed("fingerprint", lambda graph: digest(encode_graph(graph)))


def encode_graph(graph: FrozenFunctionGraph) -> bytes:
    """The canonical encoding of `graph`, kept with it; raises Unfingerprintable."""
    return graph.computed("encoding", _encode_graph)


def _encode_graph(graph: FrozenFunctionGraph) -> bytes:
    body = _GraphEncoder(graph, frozenset(data_constants(graph))).body()
    return bytes((HASH_VERSION, ENGINE_VERSION)) + body


def _inner_body(graph: FrozenFunctionGraph) -> bytes:
    """The body of a graph that an Op holds, kept with it."""
    return graph.computed("inner_body", lambda graph: _GraphEncoder(graph, ()).body())


class _Table:
    """Numbers things as they are met, equal ones once."""

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        self._by_id: dict[int, bytes] = {}
        self._by_encoding: dict[bytes, bytes] = {}

    def known(self, item: object) -> bytes | None:
        return self._by_id.get(id(item))

    def add(self, item: object, encoding: bytes) -> bytes:
        number = self._by_encoding.get(encoding)
        if number is None:
            number = self._by_encoding[encoding] = pack_uint(len(self.rows))
            self.rows.append(encoding)
        self._by_id[id(item)] = number
        return number

    def encoding(self) -> bytes:
        return pack_uint(len(self.rows)) + b"".join(_prefixed(row) for row in self.rows)


class _GraphEncoder:
    """Writes one frozen graph, of which `data` is not identity. The graph keeps alive what the tables know by id."""

    def __init__(self, graph: FrozenFunctionGraph, data: Collection[Constant]) -> None:
        self.graph = graph
        self.data = data
        self.types = _Table()
        self.ops = _Table()
        self.constants: list[bytes] = []
        self.numbers: dict[Variable, bytes] = {}

    def body(self) -> bytes:
        graph = self.graph
        inputs = [self.type_number(variable.type) for variable in graph.inputs]
        self.numbers = {variable: pack_uint(2 * k) for k, variable in enumerate(graph.inputs)}
        count = len(inputs)
        nodes: list[bytes] = []
        for node in graph.nodes:
            nodes.append(self.node(node))
            for output in node.outputs:
                self.numbers[output] = pack_uint(2 * count)
                count += 1
        outputs = [self.variable(variable) for variable in graph.outputs]
        constants = pack_uint(len(self.constants)) + b"".join(_prefixed(row) for row in self.constants)
        tables = (self.types.encoding(), self.ops.encoding(), constants)
        return b"".join((*tables, *_counted(inputs), *_counted(nodes), *_counted(outputs)))

    def node(self, node: FrozenApply) -> bytes:
        op = self.ops.known(node.op) or self.ops.add(node.op, _encode_op(node.op))
        inputs = [self.numbers.get(variable) or self.variable(variable) for variable in node.inputs]
        types = [self.type_number(variable.type) for variable in node.outputs]
        return b"".join((op, *_counted(inputs), *_counted(types)))

    def variable(self, variable: Variable) -> bytes:
        found = self.numbers.get(variable)
        if found is None:
            found = self.numbers[variable] = pack_uint(2 * len(self.constants) + 1)
            self.constants.append(self.constant(cast(Constant, variable)))
        return found

    def constant(self, constant: Constant) -> bytes:
        number = self.type_number(constant.type)
        if constant in self.data:
            return b"d" + number
        return b"c" + number + _prefixed(constant.data.tobytes())

    def type_number(self, type: Type) -> bytes:
        return self.types.known(type) or self.types.add(type, _encode_type(type))


def _encode_type(type: Type) -> bytes:
    return _encode_class(type) + encode(type.props())


def _encode_op(op: Op) -> bytes:
    """The encoding of an Op: class and properties. An Op of the engine itself is also described by the engine's code;
    one of a user would need its own code in the key, so it has no encoding.
    """
    try:
        properties = op.key_props() if op.__props__ is not None else _refuse(op, "declare __props__ for it")
        encoder = Encoder()
        encoder.uint(len(properties))
        for name, value in properties.items():
            encoder.text(name)
            _write_property(encoder, name, value)
        return _encode_class(op) + encoder.encoding
    except Unfingerprintable as error:
        error.inside(f"op {op}")
        raise


def _write_property(encoder: Encoder, name: str, value: object) -> None:
    if isinstance(value, Op):
        encoder.tag(b"o")
        encoder.bytes(_encode_op(value))
    elif isinstance(value, Type):
        encoder.tag(b"t")
        encoder.bytes(_encode_type(value))
    elif isinstance(value, FrozenFunctionGraph):
        encoder.tag(b"g")
        encoder.bytes(_inner_body(value))
    else:
        encoder.tag(b"v")
        try:
            encoder.value(value)
        except Unfingerprintable as error:
            error.inside(f"props[{name!r}]")
            raise


def _encode_class(item: ByProps) -> bytes:
    cls = type(item)
    if not cls.__module__.startswith("engine.") or "<locals>" in cls.__qualname__:
        _refuse(
            item,
            "only classes of the engine itself are described by its source; the code of others is not yet",
        )
    return _prefixed(cls.__module__.encode()) + _prefixed(cls.__qualname__.encode())


def _refuse(item: object, advice: str) -> Any:
    raise Unfingerprintable(f"{type(item).__module__}.{type(item).__qualname__}", advice)


def _prefixed(content: bytes) -> bytes:
    return pack_uint(len(content)) + content


def _counted(items: Sequence[bytes]) -> tuple[bytes, ...]:
    return pack_uint(len(items)), *items
