"""User Ops: Ops with code that is not the engine's, anywhere in a graph.

Every key describes the engine's source as a whole, and each user Op by its own code. User Ops are never
stored: a stored function refers to them, and takes them from the graph at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine.errors import NullGradientError
from engine.graph.absent_gradients import DisconnectedType, NullType, disconnected_type
from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.props import is_of_engine

DESCRIBED = ("engine", "cachegraph")
"""The packages whose source is in every key."""


def is_user_op(op: Op) -> bool:
    """Return True if `op` itself is a user's: of a user's class, or made from a user's function."""
    return op.holds_code or not is_of_engine(op)


def find_user_ops(graph: FrozenFunctionGraph) -> tuple[Op, ...]:
    """Return the user Ops in `graph`, its inner graphs and its Ops' properties, each once."""
    return graph.computed("user_ops", _collect)


def _collect(graph: FrozenFunctionGraph) -> tuple[Op, ...]:
    nodes = dict.fromkeys([node.op for node in graph.nodes])
    return tuple(dict.fromkeys(found for op in nodes for found in user_ops_within(op)))


def user_ops_within(op: Op) -> Iterator[Op]:
    """Yield `op` if it is a user Op, and the user Ops in its inner graph and properties."""
    if is_user_op(op):
        yield op
    held = getattr(op, "fgraph", None)
    for value in (held, *(op.key_props().values() if op.__props__ is not None else ())):
        yield from _within(value)


def _within(value: Any) -> Iterator[Op]:
    if isinstance(value, FrozenFunctionGraph):
        yield from find_user_ops(value)
    elif isinstance(value, Op):
        yield from user_ops_within(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _within(item)


def needs_python(op: Op) -> bool:
    """Return True if only Python can compute `op` or a part of it; cached on the Op."""
    found: bool | None = op.__dict__.get("_exact_needs_python")
    if found is None:
        found = op.__dict__["_exact_needs_python"] = any(True for _ in user_ops_within(op))
    return found


def without_context(node: Apply) -> Apply:
    """Return the Op of `node` applied to fresh inputs of the same types.

    A user Op is given this node when it is asked for lengths, or for code for numba. The answers are stored
    under a key that describes only the Op and types: so the Op must not see constants, or other nodes of
    the graph.
    """
    inputs, outputs = (
        [variable.type.make_variable() for variable in variables] for variables in (node.inputs, node.outputs)
    )
    return Apply(node.op, inputs, outputs)


def users_method(op: Op, name: str, older: Sequence[str]) -> Any:
    """Return the method of this name, or else of an older one, that a user has written; None without one."""
    if not is_user_op(op):
        return None
    if (getattr(getattr(type(op), name), "__module__", None) or "").partition(".")[0] != "engine":
        return getattr(op, name)
    return next((getattr(op, each) for each in older if hasattr(op, each)), None)


def given_to_user(derivative: Any) -> Any:
    """Return a derivative as methods of users' take it: a variable of DisconnectedType for None."""
    return disconnected_type.make_variable() if derivative is None else derivative


def given_by_user(op: Op, derivative: Any) -> Any:
    """Return a derivative that a method of `op` gave, None for no dependence.

    Raises NullGradientError for one that is not defined.
    """
    type_of = getattr(derivative, "type", None)
    if isinstance(type_of, NullType):
        raise NullGradientError(f"Taking a gradient through {op}: {type_of.why_null}", op)
    return None if isinstance(type_of, DisconnectedType) else derivative
