"""Registrations of others in the tables that PyTensor's rewrites and its numba linker consult.

    registrations := value(sorted tuples of (table, subject, function))

PyTensor's own registrations belong to its release, loaded or not; only those of other modules are written,
with the code of what they registered. A registration for a class that PyTensor and its dependencies do not
know (PyMC's for pandas' data frames, say) is written only if code by others than PyTensor and PyMC was
encoded: only such code has an instance. Only loaded tables are read: nothing is imported. A test reads the
installed PyTensor for tables (functools.singledispatch) that are neither here nor in NOT_READ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES
from cachegraph.pytensor.describe.values import EncodingContext, encode_value, is_module_of

DISPATCHERS = {
    "pytensor.link.numba.dispatch.basic": (
        "numba_typify", "numba_funcify", "numba_funcify_default_op_cache_key", "numba_funcify_and_cache_key",
    ),
    "pytensor.link.numba.dispatch.elemwise": ("scalar_in_place_fn",),
    "pytensor.link.numba.dispatch.random": ("numba_core_rv_funcify",),
    "pytensor.graph.replace": ("_vectorize_node",),
    "pytensor.scan.rewriting.inner_graph": ("rewrite_scan_inner_graph",),
    "pytensor.compile.rewriting": ("rewrite_ofg_inner_graph",),
    "pytensor.tensor.optimize": ("rewrite_optimize_inner_graph",),
    "pytensor.tensor": ("_as_tensor_variable", "_get_vector_length"),
    "pytensor.basic": ("_as_symbolic",),
    "pytensor.xtensor.vectorization": ("_vectorize_xnode",),
}  # fmt: skip
"""Functions of functools.singledispatch that decide what a graph becomes, by module."""

NOT_READ = {
    "pytensor.printing.op_debug_information": "shows a graph",
    "pytensor.compile.sharedvalue.shared_constructor": "makes shared variables, before there is a graph",
}
"""Dispatchers that decide nothing about an existing graph, and why."""

ASSUMPTIONS = (
    "ASSUMPTION_INFER_REGISTRY",
    "CONSTANT_INFER_REGISTRY",
    "CLIENT_INFER_REGISTRY",
    "KEY_REGISTRY",
)
"""Tables of pytensor.assumptions.core; older releases lack the last two. The last has only names."""

PYTENSOR = ("pytensor",)
_KNOWN_TO_PYTENSOR = ("numpy", "scipy", "numba", "xarray")
"""Packages for whose classes PyTensor registers functions, some of them at the first use of a class."""
_KNOWN = (*HOST_PACKAGES, *_KNOWN_TO_PYTENSOR)


def encode_registrations(context: EncodingContext) -> bytes:
    """Return the encoding of the registrations by others that the code encoded in `context` can reach.

    Raises Unfingerprintable for code without an encoding.
    """
    found = (*_dispatched(), *_assumed())
    rows = [_row(row, context) for row in found if not _is_for_other_packages(row[1])]
    if context.by_others:
        rows += (_row(row, context) for row in found if _is_for_other_packages(row[1]))
    return encode_value((sorted(rows), _implications()), context)


def _row(row: tuple[str, object, object], context: EncodingContext) -> bytes:
    table, subject, _ = row
    try:
        return encode_value(row, context)
    except Unfingerprintable as error:
        error.inside(f"what {table} has for {getattr(subject, '__qualname__', subject)}")
        raise


def _is_for_other_packages(subject: object) -> bool:
    """Return True if neither PyTensor, PyMC nor their dependencies have instances of `subject`.

    An abstract class may have any class for a subclass.
    """
    return type(subject) is type and not is_of(_KNOWN, subject)


def _dispatched() -> Iterator[tuple[str, object, object]]:
    for module, names in DISPATCHERS.items():
        loaded = sys.modules.get(module)
        for name in names if loaded is not None else ():
            for cls, function in getattr(loaded, name).registry.items():
                if not is_of_pytensor(cls, function):
                    yield f"{module}.{name}", cls, function


def registered_by_others() -> Iterator[tuple[object, object]]:
    """Yield each subject and function that others than PyTensor have registered."""
    for _, subject, function in (*_dispatched(), *_assumed()):
        yield subject, function


def is_of_pytensor(cls: object, function: object) -> bool:
    """Return True if PyTensor itself registered `function` for `cls`."""
    return is_of(PYTENSOR, function) and is_of(PYTENSOR + _KNOWN_TO_PYTENSOR, cls)


def _assumed() -> Iterator[tuple[str, object, object]]:
    """Yield the rules of others about matrices (pytensor/assumptions/core.py), each with its position."""
    core = sys.modules["pytensor.assumptions.core"]
    _refuse_unknown_tables(core)
    for (key, cls), rules in core.ASSUMPTION_INFER_REGISTRY.items():
        for position, rule in enumerate(rules):
            if not is_of(PYTENSOR, rule):
                yield "assumptions", (key, cls, position, len(rules)), rule
    for key, rule in core.CONSTANT_INFER_REGISTRY.items():
        if not is_of(PYTENSOR, rule):
            yield "assumptions of constants", key, rule
    for (key, cls), rule in getattr(core, "CLIENT_INFER_REGISTRY", {}).items():  # since PyTensor 3.3.5
        if not is_of(PYTENSOR, rule):
            yield "assumptions of clients", (key, cls), rule


def _refuse_unknown_tables(core: Any) -> None:
    """Raise Unfingerprintable if this release has a table of rules that is not read here."""
    for name in core.__dict__:
        if name.endswith("_REGISTRY") and name not in ASSUMPTIONS:
            raise Unfingerprintable(
                f"the table {core.__name__}.{name}, which this release of the adapter does not read",
                "update cachegraph",
            )


def _implications() -> dict[str, list[str]]:
    core: Any = sys.modules["pytensor.assumptions.core"]
    return {stronger.name: [weaker.name for weaker in found] for stronger, found in core.IMPLIES.items()}


def is_of(packages: tuple[str, ...], item: Any) -> bool:
    """Return True if only `packages` and Python made `item`: a function by its globals and contents."""
    pending, seen = [item], set[int]()
    while pending:
        part = pending.pop()
        kind = type(part)
        if kind is FunctionType:
            module = part.__globals__.get("__name__")
            if part.__closure__ and id(part) not in seen:
                seen.add(id(part))
                pending.extend(_held(part))
        elif not issubclass(kind, type) and not is_module_of(packages, kind.__module__):
            return False
        elif isinstance(part, partial):
            pending += (part.func, *filter(callable, (*part.args, *part.keywords.values())))
            continue
        else:
            module = getattr(part, "__module__", None)
        if not isinstance(module, str) or not is_module_of(packages, module):
            return False
    return True


def _held(function: FunctionType) -> Iterator[Any]:
    """Yield the functions and classes in the free variables of `function`, and in lists there."""
    for cell in function.__closure__ or ():
        found = cell.cell_contents
        for part in found if isinstance(found, list) else [found]:
            if isinstance(part, FunctionType | type):
                yield part
