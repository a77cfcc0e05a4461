"""The attributes of Ops, rewriters and the like that say what they are, and those that do not.

What PyTensor compares by `__props__` may still compute another thing, so every attribute of an object is identity, but for
those that are listed with a reason: they remember what follows from others, name a thing for readers, or say how gradients are
taken, which is done before a graph is compiled. A test reads the installed release for attributes that methods of Ops set
later and that are not listed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pytensor.graph.op import Op

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: set on every class made by a class statement

NOT_IDENTITY: dict[str, dict[str, str]] = {
    "pytensor.graph.rewriting.basic.Rewriter": {
        "name": "that of its entry in a database",
        "failure_callback": "how it is said that one failed",
        "values_eq_approx": "how DebugMode compares",
        "node_tracker": "remembers what follows from the rewriters",
        "tracker": "remembers what follows from the rewriters",
        "_tracked_ops": "follows from _tracks",
        "_tracked_types": "follows from _tracks",
        "_tracked_op_patterns": "follows from _tracks",
        "_tracked_op_pattern_types": "follows from _tracks",
        "profile": "what is measured",
        "time_rewrites": "what is measured",
        "process_count": "what is measured",
        "applied_true": "what is measured",
        "node_created": "what is measured",
        "track_map": "follows from the rewriters",
        "pre_profile": "what is measured",
        "warned": "whether something was said",
    },
    "pytensor.graph.rewriting.db.RewriteDatabase": {
        "failure_callback": "how it is said that one failed",
        "profile": "what is measured",
        "name": "that of its entry in a database",
    },
    "pytensor.compile.builders.OpFromGraph": {
        "name": "for readers",
        "pullback_overrides": "how gradients are taken: done before the graph is compiled",
        "pushforward_overrides": "how gradients are taken: done before the graph is compiled",
        "_frozen_lop": "remembers what follows from the overrides",
        "_frozen_rop": "remembers what follows from the overrides",
        "_lop_op_cache": "remembers the Op of the gradient",
        "_rop_op_cache": "remembers the Op of the gradient",
        "_connection_pattern": "how gradients are taken; remembered when first asked for",
        "_inner_shape_template": "remembers what follows from the inner graph",
        "_inner_shape_frozen": "remembers what follows from the inner graph",
        "_fn": "remembers the linked inner graph",
    },
    "pytensor.compile.builders.SymbolicOp": {
        "_init_kwargs": "what it was made with; all of it is in other attributes, or is about gradients",
    },
    "pytensor.graph.rewriting.db.RewriteDatabaseQuery": {"name": "for readers"},
    "pytensor.link.basic.Linker": {"_allow_gc": "when memory is freed"},
    "pytensor.compile.ops.FromFunctionOp": {
        "infer_shape": "a method of its own, which asks the function that it was given",
    },
    "pytensor.scan.op.Scan": {
        "name": "for readers",
        "profile": "what is measured, not what is computed",
        "vector_seqs": "remembers what follows from the node last made",
        "vector_outs": "remembers what follows from the node last made",
        "t_call": "what is measured",
        "t_fn": "what is measured",
        "_fn": "remembers the linked inner graph",
    },
    "pytensor.tensor.optimize.ScipyWrapperOp": {
        "_fn": "remembers the linked inner graph",
        "_fn_wrapped": "remembers the linked inner graph",
    },
    "pytensor.link.c.op.OpenMPOp": {"openmp": "of C code"},
    "pytensor.tensor.elemwise.Elemwise": {
        "nfunc": "remembers the ufunc that nfunc_spec names",
        "ufunc": "remembers what perform calls",
    },
    "pytensor.tensor.elemwise.CAReduce": {"_ufunc": "remembers what perform calls"},
    "pytensor.sparse.rewriting.StructuredDotCSR": {
        "dtype_out": "remembers what follows from the node last made"
    },
    "pymc.distributions.dist_math.SplineWrapper": {"_grad_op": "remembers the Op of the gradient"},
    "pymc.ode.ode.DifferentialEquation": {
        "_augmented_func": "is func with its derivatives, compiled",
        "_apply_nodes": "remembers variables for gradients",
        "_output_sensitivities": "remembers variables for gradients",
    },
    "pytensor.scalar.basic.ScalarInnerGraphOp": {
        "name": "for readers",
        "inputs": "are those of the inner graph",
        "outputs": "are those of the inner graph",
        "prepare_node_called": "remembers which nodes C code was prepared for",
        "nodenames": "remembers names within C code",
        "inner_float16": "remembers what C code needs",
        "_py_perform_fn": "remembers the inner graph as a Python function",
        "_c_code": "remembers the C code",
        "_name": "for readers",
        "_hash": "remembers the hash",
    },
}
"""Attributes of the classes of releases, and of what derives from them, that are no identity, and why."""


_OF_READERS = frozenset(
    ("__doc__", "__module__", "__name__", "__qualname__", "__epydoc_asRoutine", "__oplist_tags")
)


def state_of(value: Any) -> dict[str, object]:
    """The attributes of `value` that are identity, by name; raises Unfingerprintable if it may have hidden ones."""
    cls: type = type(value)
    left_out, slots = attributes_of(cls)
    state = {name: item for name, item in getattr(value, "__dict__", {}).items() if name not in left_out}
    return {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **state}


@lru_cache(maxsize=2048)
def attributes_of(cls: type) -> tuple[frozenset[str], tuple[str, ...]]:
    """The attributes of instances of `cls` that are no identity, and its slots; raises Unfingerprintable for hidden ones."""
    if not all(base.__flags__ & HEAP_TYPE for base in cls.__mro__[:-1]):
        raise Unfingerprintable(
            name_of(cls), "it derives from a native class, whose state its attributes do not show"
        )
    left_out = {name for base in cls.__mro__ for name in NOT_IDENTITY.get(name_of(base), ())} | _OF_READERS
    if not is_of_host(cls):
        left_out.discard("name")  # what it means is the class's own affair
    return frozenset(left_out), tuple(
        slot for base in cls.__mro__ for slot in _slots(base) if slot not in left_out
    )


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(_mangled(cls, name) for name in names if name not in ("__dict__", "__weakref__"))


def _mangled(cls: type, name: str) -> str:
    """The name that Python gives an attribute that is private to `cls`."""
    private = name.startswith("__") and not name.endswith("__")
    return f"_{cls.__name__.lstrip('_')}{name}" if private else name


def is_of_host(cls: type) -> bool:
    """Whether `cls` says that it is of PyTensor or PyMC."""
    return cls.__module__.partition(".")[0] in HOST_PACKAGES


def name_of(cls: type) -> str:
    """The module and qualified name of `cls`, to show and to look up."""
    return f"{cls.__module__}.{cls.__qualname__}"


_WRAPPING_USER_CODE = frozenset(
    (
        "pytensor.compile.ops.FromFunctionOp",
        "pymc.distributions.dist_math.SplineWrapper",
        "pymc.ode.ode.DifferentialEquation",
    )
)
"""The classes of PyTensor and PyMC whose Ops are made of what others wrote: a function, or a spline of SciPy's."""


def is_user_op(op: Any) -> bool:
    """Whether `op` is of a class, or around what is, that is neither PyTensor's nor PyMC's."""
    cls: type = type(op)
    return _is_user_class(cls)


@lru_cache(maxsize=2048)
def _is_user_class(cls: type) -> bool:
    return not is_of_host(cls) or any(name_of(base) in _WRAPPING_USER_CODE for base in cls.__mro__)


def parts_of(op: Any) -> list[Any]:
    """The Ops that `op` applies to parts of what it is given."""
    held = (getattr(op, name, None) for name in ("core_op", "scalar_op"))
    return [part for part in held if isinstance(part, Op)]
