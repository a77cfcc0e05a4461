"""The attributes of Ops, rewriters and the like that are identity, and those that are not.

Ops that PyTensor finds equal by `__props__` may still compute different things, so every attribute of an
object is identity, except those listed here with a reason: caches of what follows from others, names for
readers, and settings of gradients, which are taken before a graph is compiled. A test reads the installed
release for attributes that methods of Ops set later and that are not listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from pytensor.graph.op import HasInnerGraph, Op

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: set on every class made by a class statement

NOT_IDENTITY: dict[str, dict[str, str]] = {
    "pytensor.graph.rewriting.basic.Rewriter": {
        "name": "the name of its entry in a database",
        "failure_callback": "how a failure is reported",
        "values_eq_approx": "how DebugMode compares",
        "node_tracker": "derived from the rewriters",
        "tracker": "derived from the rewriters",
        "_tracked_ops": "derived from _tracks",
        "_tracked_types": "derived from _tracks",
        "_tracked_op_patterns": "derived from _tracks",
        "_tracked_op_pattern_types": "derived from _tracks",
        "profile": "profiling data",
        "time_rewrites": "profiling data",
        "process_count": "profiling data",
        "applied_true": "profiling data",
        "node_created": "profiling data",
        "track_map": "derived from the rewriters",
        "pre_profile": "profiling data",
        "warned": "whether a warning was given",
    },
    "pytensor.graph.rewriting.unify.PatternNode": {
        "asterisk": "the last of the inputs, or None",
        "n_fixed": "counts the inputs",
        "match_order": "derived from the inputs",
        "needs_commutative": "derived from the Op and the inputs",
    },
    "pytensor.graph.rewriting.db.RewriteDatabase": {
        "failure_callback": "how a failure is reported",
        "profile": "profiling data",
        "name": "the name of its entry in a database",
    },
    "pytensor.compile.builders.OpFromGraph": {
        "name": "for readers",
        "pullback_overrides": "for gradients, which are taken before the graph is compiled",
        "pushforward_overrides": "for gradients, which are taken before the graph is compiled",
        "_frozen_lop": "derived from the overrides",
        "_frozen_rop": "derived from the overrides",
        "_lop_op_cache": "the Op of the gradient, cached",
        "_rop_op_cache": "the Op of the gradient, cached",
        "_connection_pattern": "for gradients; cached at the first use",
        "_inner_shape_template": "derived from the inner graph",
        "_inner_shape_frozen": "derived from the inner graph",
        "_fn": "the linked inner graph, cached",
    },
    "pytensor.compile.builders.SymbolicOp": {
        "_init_kwargs": "the constructor's arguments; all are in other attributes, or for gradients",
    },
    "pytensor.graph.rewriting.db.RewriteDatabaseQuery": {"name": "for readers"},
    "pytensor.link.basic.Linker": {"_allow_gc": "when memory is freed"},
    "pytensor.compile.ops.FromFunctionOp": {
        "infer_shape": "a method that calls the function it was given",
    },
    "pytensor.scan.op.Scan": {
        "name": "for readers",
        "profile": "profiling data",
        "vector_seqs": "derived from the node last made",
        "vector_outs": "derived from the node last made",
        "t_call": "profiling data",
        "t_fn": "profiling data",
        "_fn": "the linked inner graph, cached",
    },
    "pytensor.tensor.optimize.ScipyWrapperOp": {
        "_fn": "the linked inner graph, cached",
        "_fn_wrapped": "the linked inner graph, cached",
    },
    "pytensor.link.c.op.OpenMPOp": {"openmp": "of C code"},
    "pytensor.tensor.elemwise.Elemwise": {
        "nfunc": "the ufunc that nfunc_spec names, cached",
        "ufunc": "what perform calls, cached",
    },
    "pytensor.tensor.elemwise.CAReduce": {"_ufunc": "what perform calls, cached"},
    "pytensor.sparse.rewriting.StructuredDotCSR": {"dtype_out": "derived from the node last made"},
    "pymc.distributions.dist_math.SplineWrapper": {"_grad_op": "the Op of the gradient, cached"},
    "pymc.ode.ode.DifferentialEquation": {
        "_augmented_func": "is func with its derivatives, compiled",
        "_apply_nodes": "variables for gradients, cached",
        "_output_sensitivities": "variables for gradients, cached",
    },
    "pytensor.scalar.basic.ScalarInnerGraphOp": {
        "name": "for readers",
        "inputs": "are those of the inner graph",
        "outputs": "are those of the inner graph",
        "prepare_node_called": "the nodes that C code was prepared for",
        "nodenames": "names within C code, cached",
        "inner_float16": "for C code, cached",
        "_py_perform_fn": "the inner graph as a Python function, cached",
        "_c_code": "the C code, cached",
        "_name": "for readers",
        "_hash": "the hash, cached",
    },
}
"""Attributes of classes of releases, and of their subclasses, that are not identity, and why."""


_OF_READERS = frozenset(
    ("__doc__", "__module__", "__name__", "__qualname__", "__epydoc_asRoutine", "__oplist_tags")
)


_ABSENT = object()


def state_of(value: Any) -> dict[str, object]:
    """Return the attributes of `value` that are identity; raises Unfingerprintable if some may be hidden."""
    cls: type = type(value)
    left_out, slots = attributes_of(cls)
    state = {name: item for name, item in getattr(value, "__dict__", {}).items() if name not in left_out}
    if not slots:
        return state
    held = [(name, getattr(value, name, _ABSENT)) for name in slots]
    return {**{name: item for name, item in held if item is not _ABSENT}, **state}


@lru_cache(maxsize=2048)
def attributes_of(cls: type) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the attributes of `cls` that are not identity, and its slots; raises Unfingerprintable."""
    if not all(base.__flags__ & HEAP_TYPE for base in cls.__mro__[:-1]):
        raise Unfingerprintable(
            name_of(cls), "it derives from a native class, whose state its attributes do not show"
        )
    left_out, slots = _declared(cls)
    left_out |= _OF_READERS
    if not is_of_host(cls):
        left_out -= {"name"}  # in a user's class the name may decide something
    return left_out, tuple([slot for slot in slots if slot not in left_out]) if slots else ()


@lru_cache(maxsize=2048)
def _declared(cls: type) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return what NOT_IDENTITY and `__slots__` say of `cls` and its bases."""
    left_out: frozenset[str] = frozenset(NOT_IDENTITY.get(name_of(cls), ()))
    slots = _slots(cls)
    for base in cls.__bases__:
        if base is not object:
            more, others = _declared(base)
            left_out |= more
            slots += others
    return left_out, slots


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple([_mangled(cls, name) for name in names if name not in ("__dict__", "__weakref__")])


def _mangled(cls: type, name: str) -> str:
    """Return the name that Python gives a private attribute of `cls`."""
    private = name.startswith("__") and not name.endswith("__")
    return f"_{cls.__name__.lstrip('_')}{name}" if private else name


def is_of_host(cls: type) -> bool:
    """Return True if `cls` says that it belongs to PyTensor or PyMC."""
    return cls.__module__.partition(".")[0] in HOST_PACKAGES


def name_of(cls: type) -> str:
    """Return the module and qualified name of `cls`, to show and to look up."""
    return f"{cls.__module__}.{cls.__qualname__}"


_WRAPPING_USER_CODE = frozenset(
    (
        "pytensor.compile.ops.FromFunctionOp",
        "pymc.distributions.dist_math.SplineWrapper",
        "pymc.ode.ode.DifferentialEquation",
    )
)
"""Classes of PyTensor and PyMC whose Ops wrap what users wrote: a function, or a spline of SciPy's."""


def is_user_op(op: Any) -> bool:
    """Return True if the class of `op` belongs to neither PyTensor nor PyMC, or wraps code of users."""
    cls: type = type(op)
    return _is_user_class(cls)


@lru_cache(maxsize=2048)
def _is_user_class(cls: type) -> bool:
    return not is_of_host(cls) or any(name_of(base) in _WRAPPING_USER_CODE for base in cls.__mro__)


def parts_of(op: Any) -> list[Any]:
    """Return the Ops that `op` applies to parts of its inputs."""
    held = (getattr(op, name, None) for name in ("core_op", "scalar_op"))
    return [part for part in held if isinstance(part, Op)]


def with_parts(ops: Iterable[Any]) -> list[Any]:
    """Return `ops` and the Ops within them, each once."""
    found: dict[int, Any] = {}
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if id(op) in found:
            continue
        found[id(op)] = op
        waiting += parts_of(op)
        if isinstance(op, HasInnerGraph):
            waiting += (node.op for node in op.fgraph.toposort())
    return list(found.values())
