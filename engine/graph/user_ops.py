"""Users' Ops: those whose code is not the engine's, wherever in a graph they are.

The engine's source is described in every key as a whole; a user's Op is described by its own code, and never stored: what
is stored of a function names it, and takes it from the graph at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.props import is_of_engine


def is_users(op: Op) -> bool:
    """Whether `op` itself is a user's: of a user's class, or made of a user's function."""
    return op.holds_code or not is_of_engine(op)


def users_ops(graph: FrozenFunctionGraph) -> tuple[Op, ...]:
    """The users' Ops of `graph` and of the graphs and Ops within its Ops, each once, as they are met; kept with it."""
    return graph.computed("users_ops", _users_ops)


def _users_ops(graph: FrozenFunctionGraph) -> tuple[Op, ...]:
    nodes = dict.fromkeys([node.op for node in graph.nodes])
    return tuple(dict.fromkeys(found for op in nodes for found in users_ops_within(op)))


def users_ops_within(op: Op) -> Iterator[Op]:
    """`op` if it is a user's, and the users' Ops that it is made of."""
    if is_users(op):
        yield op
    held = getattr(op, "fgraph", None)
    for value in (held, *(op.key_props().values() if op.__props__ is not None else ())):
        yield from _within(value)


def _within(value: Any) -> Iterator[Op]:
    if isinstance(value, FrozenFunctionGraph):
        yield from users_ops(value)
    elif isinstance(value, Op):
        yield from users_ops_within(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _within(item)


def needs_python(op: Op) -> bool:
    """Whether only Python can compute `op`, or a part of it; remembered with the Op."""
    found: bool | None = op.__dict__.get("_exact_needs_python")
    if found is None:
        found = op.__dict__["_exact_needs_python"] = any(True for _ in users_ops_within(op))
    return found


def without_context(node: Apply) -> Apply:
    """Return the Op of `node` applied to fresh inputs of the same types.

    A user Op is shown this node when it is asked for lengths, or for code for numba. The answers are stored under a key
    that describes the Op and types: so the Op must not see constants, the nodes around, or other parts of the graph.
    """
    inputs, outputs = (
        [variable.type.make_variable() for variable in variables] for variables in (node.inputs, node.outputs)
    )
    return Apply(node.op, inputs, outputs)
