"""The keys of functions and of optimized inner graphs: each describes all that decides what is built.

The data of a graph (request.py) is in no key but by dtype and shape.
"""

from __future__ import annotations

from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import HASH_VERSION
from cachegraph.key import CacheKey
from engine.compiling.graph_encoding import UserOps, graph_body, inner_body
from engine.compiling.request import FunctionRequest, data_constants
from engine.compiling.surroundings import (
    ENGINE_VERSION,
    describe_rewrites,
    encode_tools,
    engine_code,
    program_target,
)
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.user_ops import find_user_ops


def request_key(request: FunctionRequest, user_ops: UserOps) -> CacheKey:
    """Return the key of the function that `request` asks for; raises as function_key does."""
    interface = (request.interface.n_outputs, request.interface.updated)
    mode = request.mode
    return function_key(request.graph, interface, describe_rewrites(mode.optimizer), (mode.linker,), user_ops)


def function_key(
    graph: FrozenFunctionGraph,
    interface: object,
    rewrites: object,
    options: object,
    user_ops: UserOps | None = None,
) -> CacheKey:
    """Return the key of a compiled function: its graph before rewriting, and all else that decides what
    is built.

    `interface`, `rewrites` and `options` are plain values. The user Ops of the graph are added to
    `user_ops`. Raises Unfingerprintable, with the path to what has no canonical encoding, and
    SourceError if the engine's source cannot be read, or changed since this process began.
    """
    parts = {
        "scheme": encode(("function", ENGINE_VERSION)),
        "graph": encode_graph(graph, user_ops),
        "interface": encode(interface),
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": encode_tools(),
        "target": program_target(),
    }
    return CacheKey.build("function", parts)


def op_key(
    graph: FrozenFunctionGraph, rewrites: object, options: object, user_ops: UserOps | None = None
) -> CacheKey:
    """Return the key of the optimized form of `graph`, which an Op holds: all of its inputs protected,
    all of its constants described by their elements. It does not depend on which Op holds the graph.

    Raises Unfingerprintable, with the path to what has no canonical encoding.
    """
    parts = {
        "scheme": encode(("op", ENGINE_VERSION)),
        "graph": _VERSIONS + inner_body(graph, user_ops or UserOps()),
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": encode_tools(),
    }
    return CacheKey.build("op", parts)


def callback_function_key(
    graph: FrozenFunctionGraph, options: object, user_ops: UserOps | None = None
) -> CacheKey:
    """Return the key of a function that a callback calls: `graph` is compiled without rewriting, and
    all of its constants are described by their elements.

    Raises as function_key does.
    """
    parts = {
        "scheme": encode(("called function", ENGINE_VERSION)),
        "graph": _VERSIONS + inner_body(graph, user_ops or UserOps()),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": encode_tools(),
        "target": program_target(),
    }
    return CacheKey.build("function", parts)


def encode_graph(graph: FrozenFunctionGraph, user_ops: UserOps | None = None) -> bytes:
    """Return the canonical encoding of `graph`, and add its user Ops to `user_ops`; raises Unfingerprintable.

    The encoding is kept with the graph unless it has user Ops, whose code may have changed by the next time.
    """
    if find_user_ops(graph):
        return _encode_graph(graph, user_ops or UserOps())
    return graph.computed("encoding", lambda graph: _encode_graph(graph, UserOps()))


_VERSIONS = bytes((HASH_VERSION, ENGINE_VERSION))


def _encode_graph(graph: FrozenFunctionGraph, user_ops: UserOps) -> bytes:
    return _VERSIONS + graph_body(graph, frozenset(data_constants(graph)), user_ops)
