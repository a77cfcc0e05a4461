"""The key of a function that PyTensor compiles: its graph before rewriting, and all else that the result
depends on.

    key := level "function": scheme graph interface rewrites registrations options code toolchain target
                             repeats? objects? notes?
    key := level "op":       scheme graph rewrites registrations options code toolchain target notes?

graph: graphs.py and values.py; rewrites: rewrites.py, and
the name of the backend if it is not numba; registrations: registries.py; options: flags.py. The
interface says of each input whether it may be overwritten and aliased, and whether it is updated,
implicit, shared and given; of each output, whether it may be aliased. Names are in none of these parts: a
hit takes them from the graph in hand. But if rewrites or registrations come from others than PyTensor and
PyMC, the notes contain the names (tags.py). The repeats say which data of a backend's function have the
same numbers (repeated_data.py). The objects say which nodes apply the same user Op, if two
user Ops are alike.

Version history
    1  first
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from pytensor.compile.mode import Mode, optdb
from pytensor.configdefaults import config
from pytensor.link.numba.linker import NumbaLinker
from pytensor.tensor.basic import infer_shape_db

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import prefixed
from cachegraph.fingerprint.releases import package_version
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.backends import backend_of
from cachegraph.pytensor.describe.attributes import is_user_op
from cachegraph.pytensor.describe.basis import Basis
from cachegraph.pytensor.describe.flags import compiles, flags_in_key
from cachegraph.pytensor.describe.graphs import PyTensorGraphEncoder, encoding_context, nodes_of
from cachegraph.pytensor.describe.host_packages import encode_host_code
from cachegraph.pytensor.describe.registries import encode_registrations
from cachegraph.pytensor.describe.repeated_data import Data, RepeatedData, without_repeats
from cachegraph.pytensor.describe.rewrites import LATE, encode_databases, encode_query, is_within
from cachegraph.pytensor.describe.tags import encode_notes, op_names, refuse_user_tags
from cachegraph.pytensor.describe.values import EncodingContext, encode_op, encode_type
from cachegraph.toolchain import toolchain

VERSION = 1
FEW_ELEMENTS = 32
"""The most elements of a constant that rewrites look into; with large_constants, more are data."""

Rewrites = Callable[[frozenset[str], EncodingContext], bytes]
"""rewrites(late packages that count, context) -> the encoding of rewrites; raises Unfingerprintable."""


class GraphDescription(NamedTuple):
    """The full description of what a function, or an inner graph, computes.

    `key` finds its entry. `classes` and `ops` are those from outside PyTensor and PyMC, in the order in which
    they were encoded, one per encoding; but each Op object that the graph's own nodes apply, and these first.
    `constants` are its data, in the order in which the key numbers it, after the inputs, but without the
    `repeats`, which are views of them; `nodes` counts its nodes. `rewriters` are those that contain code of
    others. `basis` tells whether all of this is unchanged.
    """

    key: CacheKey
    classes: tuple[type, ...]
    ops: tuple[Any, ...]
    constants: tuple[Any, ...]
    repeats: tuple[RepeatedData, ...]
    nodes: int
    rewriters: tuple[Any, ...]
    basis: Basis


def describe(
    inputs: Any, outputs: Any, mode: Any, accept_inplace: bool = False, large_constants: bool = False
) -> GraphDescription:
    """Return the description of the function that FunctionMaker would make of `inputs` (In) and `outputs`
    (Out or variables).

    With `large_constants` the key has only the types of arrays of more than FEW_ELEMENTS numbers: they must
    be made inputs before the graph is rewritten. Raises Unfingerprintable, with the path to what has no
    canonical encoding, and SourceError if the adapter, or a checkout of PyTensor or PyMC, was edited since it
    was imported.
    """
    context = encoding_context()
    outputs = outputs if isinstance(outputs, list | tuple) else [] if outputs is None else [outputs]
    computed = [_variable(output) for output in outputs]
    updates = [spec.update for spec in inputs if getattr(spec, "update", None) is not None]
    roots = [_variable(spec) for spec in inputs]
    nodes = nodes_of(roots, (*computed, *updates))
    encoder = PyTensorGraphEncoder(
        roots, (*computed, *updates), nodes, context, is_data=is_data if large_constants else None
    )
    by_users = [node for node in nodes if is_user_op(node.op)]
    refuse_user_tags(by_users)
    parts = {
        "scheme": encode(("pytensor function", VERSION)),
        "graph": encoder.encoding(),
        "interface": encode((_interface(inputs, outputs), accept_inplace, len(encoder.data))),
    }
    data = Data(tuple(encoder.data), (), ())
    if backend_of(mode.linker) is not None:  # numba compiles for the layout of each array
        data = without_repeats(encoder.data)
    if data.pattern:
        parts["repeats"] = encode(data.pattern)
    # Each Op object once: its state between runs is its own.
    own = list({id(node.op): node.op for node in by_users}.values())
    described = [context.op(op) for op in own]
    if len(set(described)) < len(own):
        numbers = {id(op): number for number, op in enumerate(own)}
        parts["objects"] = encode([numbers[id(node.op)] for node in by_users])
    ops = (*own, *(op for encoding, op in context.user_ops.items() if encoding not in described))
    basis = Basis(context)
    foreign = context.foreign
    parts |= surroundings(context, partial(_rewrites, mode))
    if context.foreign != foreign:
        parts["notes"] = encode_notes(roots, (*computed, *updates), nodes, context)
    key = CacheKey.build("function", parts)._replace(names=encoder.names())
    classes, rewriters = context.user_classes, tuple(context.rewriters)
    return GraphDescription(key, classes, ops, data.inputs, data.repeats, len(nodes), rewriters, basis)


def describe_inner(op: Any, node: Any, mode: Any) -> GraphDescription:
    """Return the description of rewriting the inner graph of `op` for `node`, of which only types are read.

    Raises as `describe` does.
    """
    context = encoding_context()
    types = [encode_type(variable.type, context) for variable in (*node.inputs, *node.outputs)]
    parts = {
        "scheme": encode(("pytensor inner graph", VERSION)),
        "graph": b"".join(map(prefixed, (encode_op(op, context), *types))),
    }
    basis = Basis(context)
    foreign = context.foreign
    parts |= surroundings(context, partial(_rewrites, mode))
    if context.foreign != foreign:
        parts["notes"] = encode(list(op_names(op)))
    key = CacheKey.build("op", parts)
    ops = tuple(context.user_ops.values())
    return GraphDescription(key, (), ops, (), (), 0, tuple(context.rewriters), basis)


def is_data(constant: Any) -> bool:
    """Return True if large_constants makes this constant data: a plain array of many numbers."""
    data = constant.data
    return type(data) is np.ndarray and data.size > FEW_ELEMENTS and data.dtype.kind in "fiu"


def _variable(spec: Any) -> Any:
    return getattr(spec, "variable", spec)


def _interface(inputs: Any, outputs: Any) -> tuple[object, ...]:
    """Return what the specifications say in addition to the graph."""
    given = [
        (
            bool(getattr(spec, "mutable", False)),
            bool(getattr(spec, "borrow", False)),
            getattr(spec, "update", None) is not None,
            bool(getattr(spec, "implicit", False)),
            bool(getattr(spec, "shared", False)),
            getattr(spec, "value", None) is not None,
        )
        for spec in inputs
    ]
    return given, [bool(getattr(spec, "borrow", False)) for spec in outputs]


def surroundings(context: EncodingContext, rewrites: Rewrites) -> dict[str, bytes]:
    """Return the parts of a key that say how a graph is compiled; `context` has encoded the graph, `rewrites`
    encodes those that may run.
    """
    late = frozenset(
        package for package in LATE if any(is_within(module, package) for module in context.modules)
    )
    return {
        "rewrites": rewrites(late, context),
        "registrations": encode_registrations(context),
        "options": encode(flags_in_key(config)),
        "code": encode_host_code(),
        "toolchain": encode((toolchain(), package_version("scipy"))),
        "target": encode((sys.platform, platform.machine())),
    }


def _rewrites(mode: Any, late: frozenset[str], context: EncodingContext) -> bytes:
    if type(mode) is not Mode:
        raise Unfingerprintable(f"the mode {type(mode).__qualname__}", "only a plain Mode is cached")
    _check_linker(mode.linker)
    backend = backend_of(mode.linker)
    if backend is None and not compiles(os.environ):
        raise Unfingerprintable("NUMBA_DISABLE_JIT", "nothing is compiled; unset it")
    parts = [
        encode_query(mode._optimizer, context),
        encode_databases((mode.optdb, optdb, infer_shape_db), late, context),
    ]
    if backend is not None:  # rewrites of inner graphs are given the linker, too
        parts.append(encode(backend))
    return b"".join(map(prefixed, parts))


def _check_linker(linker: Any) -> None:
    """Refuse any linker but numba's and the backends' own, with no setting but when memory is freed."""
    if type(linker) is not NumbaLinker and backend_of(linker) is None:
        raise Unfingerprintable(
            f"the linker {type(linker).__qualname__}", "only functions of numba and of backends are cached"
        )
    for name, value in vars(linker).items():
        if name != "_allow_gc" and value is not None:
            raise Unfingerprintable(f"a linker with {name}", "only a plain linker is cached")
