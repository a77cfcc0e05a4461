"""The key of a function: its canonical description, which its cache entry is found by; and the data of a graph, which is in none."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import HASH_VERSION, digest
from cachegraph.fingerprint.releases import package_version
from cachegraph.fingerprint.source import check_unchanged, source_digest
from cachegraph.key import CacheKey
from cachegraph.toolchain import toolchain
from engine.compiling.graph_encoding import UsersOps, graph_body, inner_body
from engine.compiling.kernel_key import kernel_code
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.user_ops import users_ops
from engine.graph.variables import Constant
from engine.tensor.type import is_data

ENGINE_VERSION = 1
_ROOT = Path(os.path.abspath(__file__)).parents[1]
_IMPORTED = time.time()


def function_key(
    graph: FrozenFunctionGraph,
    interface: object,
    rewrites: object,
    options: object,
    users: UsersOps | None = None,
) -> CacheKey:
    """The key of a compiled function: its graph before rewriting, and all else that decides what it becomes.

    `interface`, `rewrites` and `options` are plain values. `users` knows the users' Ops of the graph from then on. Raises Unfingerprintable, with the path to what has no
    canonical encoding, and SourceError if the engine's source cannot be read, or is not what was imported.
    """
    parts = {
        "scheme": encode(("function", ENGINE_VERSION)),
        "graph": encode_graph(graph, users),
        "interface": encode(interface),
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": _encode_tools(),
        # A program runs on any CPU, but names kernels of one architecture and system.
        "target": encode((sys.platform, platform.machine())),
    }
    return CacheKey.build("function", parts)


@cache
def engine_code() -> bytes:
    """The digest of the engine's source: editing an implementation is a miss.

    Raises SourceError if it cannot be read, or was changed since it was imported.
    """
    digests = source_digest(_ROOT), kernel_code()
    check_unchanged(_ROOT, _IMPORTED)
    return digests[0]


@cache
def _encode_tools() -> bytes:
    """The releases of what compiles, and of what computes constants: numpy is among the first, SciPy is not."""
    try:
        scipy = package_version("scipy")
    except ImportError:
        scipy = "absent"
    return encode({**toolchain(), "scipy": scipy})


def op_key(
    graph: FrozenFunctionGraph, rewrites: object, options: object, users: UsersOps | None = None
) -> CacheKey:
    """The key of what `graph`, which an Op holds, becomes when it is rewritten with all of its inputs protected; all of
    its constants are identity. Which Op holds it does not matter.

    Raises Unfingerprintable, with the path to what has no canonical encoding.
    """
    parts = {
        "scheme": encode(("op", ENGINE_VERSION)),
        "graph": bytes((HASH_VERSION, ENGINE_VERSION)) + inner_body(graph, users or UsersOps()),
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": _encode_tools(),
    }
    return CacheKey.build("op", parts)


def callee_key(graph: FrozenFunctionGraph, options: object, users: UsersOps | None = None) -> CacheKey:
    """The key of a function that a callback calls: `graph` is compiled as it is, and all of its constants are identity.

    Raises as function_key does.
    """
    parts = {
        "scheme": encode(("called function", ENGINE_VERSION)),
        "graph": bytes((HASH_VERSION, ENGINE_VERSION)) + inner_body(graph, users or UsersOps()),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": _encode_tools(),
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

    So is what `graph` itself has of them: were it data, a program could take the one for the other. Kept with the graph.
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
    """The digest of the canonical encoding of `graph`: 16 bytes; raises Unfingerprintable."""
    return digest(encode_graph(graph))


def encode_graph(graph: FrozenFunctionGraph, users: UsersOps | None = None) -> bytes:
    """The canonical encoding of `graph`; `users` knows its users' Ops from then on. Kept with the graph unless it has such:
    their code may be another next time. Raises Unfingerprintable.
    """
    if users_ops(graph):
        return _encode_graph(graph, users or UsersOps())
    return graph.computed("encoding", lambda graph: _encode_graph(graph, UsersOps()))


def _encode_graph(graph: FrozenFunctionGraph, users: UsersOps) -> bytes:
    body = graph_body(graph, frozenset(data_constants(graph)), users)
    return bytes((HASH_VERSION, ENGINE_VERSION)) + body
