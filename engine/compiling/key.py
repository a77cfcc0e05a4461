"""The keys of functions, of optimized inner graphs and of kernels: each describes all that decides what
is built.

The data of a graph (request.py) is in no key but by dtype and shape.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import HASH_VERSION
from cachegraph.fingerprint.releases import package_version
from cachegraph.fingerprint.source import imported_source, source_digest
from cachegraph.key import CacheKey
from cachegraph.toolchain import toolchain
from engine.compiling.graph_encoding import UserOps, graph_body, inner_body
from engine.compiling.request import FunctionRequest, data_constants
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.user_ops import find_user_ops
from engine.runtime.container import ABI
from engine.runtime.target import process_level, process_triple

if TYPE_CHECKING:
    from engine.graph.rewrite_query import RewriteDatabaseQuery

ENGINE_VERSION = 1
KERNEL_VERSION = 1
_ENGINE = Path(os.path.abspath(__file__)).parents[1]


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
    SourceError if the engine's source cannot be read, or changed since it was imported.
    """
    parts = {
        "scheme": encode(("function", ENGINE_VERSION)),
        "graph": encode_graph(graph, user_ops),
        "interface": encode(interface),
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": _encode_tools(),
        "target": _program_target(),
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
        "toolchain": _encode_tools(),
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
        "toolchain": _encode_tools(),
        "target": _program_target(),
    }
    return CacheKey.build("function", parts)


def program_key(description: bytes, rewrites: object, options: object) -> CacheKey:
    """Return the key of a program that runs compiled functions, one after the other, and other code between
    them: `description` describes all that it was made from.

    Raises SourceError if the engine's source cannot be read, or changed since it was imported.
    """
    parts = {
        "scheme": encode(("staged program", ENGINE_VERSION)),
        "description": description,
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": _encode_tools(),
        "target": _program_target(),
    }
    return CacheKey.build("function", parts)


def kernel_key(encoding: bytes, level: str) -> CacheKey:
    """Return the key of the kernel with this canonical encoding, compiled for the CPU level `level`."""
    parts = {
        "scheme": encode(("kernel", KERNEL_VERSION)),
        "kernel": encoding,
        "code": _kernel_code_or_none(),
        "toolchain": encode(toolchain()),
        "target": _kernel_target(level),
    }
    return CacheKey.build("kernel", parts)


def encode_graph(graph: FrozenFunctionGraph, user_ops: UserOps | None = None) -> bytes:
    """Return the canonical encoding of `graph`, and add its user Ops to `user_ops`; raises Unfingerprintable.

    The encoding is kept with the graph unless it has user Ops, whose code may have changed by the next time.
    """
    if find_user_ops(graph):
        return _encode_graph(graph, user_ops or UserOps())
    return graph.computed("encoding", lambda graph: _encode_graph(graph, UserOps()))


def describe_rewrites(query: RewriteDatabaseQuery) -> tuple[tuple[str, ...], ...]:
    """Return the names that choose the rewrites; which rewrites have them follows from the engine's source.

    Raises Unfingerprintable if somebody else registered rewrites: no key describes their source.
    """
    # Before anything imports the pipeline nobody can have registered a rewrite.
    optdb = getattr(sys.modules.get("engine.rewriting.pipeline"), "optdb", None)
    foreign = optdb().foreign() if optdb is not None else []
    if foreign:
        advice = "no key describes rewrites that others register; register none to have functions cached"
        raise Unfingerprintable(f"rewrite {foreign[0]}", advice, ("rewrites", "optdb"))
    return tuple(sorted(query.include)), tuple(sorted(query.require)), tuple(sorted(query.exclude))


@cache
def engine_code() -> bytes:
    """Return the digest of the engine's source: editing an implementation is a miss.

    Raises SourceError if it cannot be read, or was changed since this process began.
    """
    return imported_source(_ENGINE)


@cache
def kernel_code() -> bytes:
    """Return the digests of the source that makes and runs kernels; raises SourceError if unreadable."""
    return b"".join(source_digest(_ENGINE / room) for room in ("lowering", "codegen", "runtime"))


_VERSIONS = bytes((HASH_VERSION, ENGINE_VERSION))


def _encode_graph(graph: FrozenFunctionGraph, user_ops: UserOps) -> bytes:
    return _VERSIONS + graph_body(graph, frozenset(data_constants(graph)), user_ops)


@cache
def _encode_tools() -> bytes:
    """Return the releases of what compiles and of what computes constants: the toolchain has numpy, but
    not SciPy."""
    try:
        scipy = package_version("scipy")
    except ImportError:
        scipy = "absent"
    return encode({**toolchain(), "scipy": scipy})


def _kernel_code_or_none() -> bytes:
    """Return kernel_code(), or nothing: without source the cache is off (lookup.py), but kernels still
    need names."""
    try:
        return kernel_code()
    except SourceError:
        return b""


def _program_target() -> bytes:
    """Return what a program depends on: it runs on any CPU, but names kernels of one system and CPU level."""
    return encode((sys.platform, platform.machine(), process_level()))


@cache
def _kernel_target(level: str) -> bytes:
    return encode((process_triple(), level, ABI))
