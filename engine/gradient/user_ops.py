"""Derivatives of nodes. User Ops follow PyTensor's protocol, which has variables for what is absent.

An output without a cotangent has one of DisconnectedType; so has an input that no output depends on. A
gradient of NullType is refused if it is needed. Ops with PyTensor's older methods `L_op` and `grad` instead
of `pullback`, or `R_op` instead of `pushforward`, are served too: `R_op` is given None, and gives None.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from engine.errors import NullGradientError
from engine.graph.absent_gradients import DisconnectedType, NullType, disconnected_type
from engine.graph.op import Op
from engine.graph.user_ops import is_user_op
from engine.graph.variables import Variable
from engine.tensor.blockwise import Blockwise

Variables = Sequence[Variable]


def pulled_back(
    op: Op, inputs: Variables, outputs: Variables, cotangents: Sequence[Any], wanted: Sequence[bool]
) -> Sequence[Any]:
    """Return the gradient for each input that is `wanted`, None for the others and for no dependence.

    Raises NullGradientError if a gradient that is wanted is not defined; ValueError if a user Op gives a
    wrong number of gradients.
    """
    if isinstance(op, Blockwise):
        rule = partial(pulled_back, op.core_op, wanted=wanted)
        return op.pullback_by(rule, inputs, outputs, cotangents)
    method = _users_method(op, "pullback", ("L_op", "grad"))
    if method is None:
        return op.pullback_wanted(inputs, outputs, cotangents, wanted)
    given = [_present(cotangent) for cotangent in cotangents]
    found = method(inputs, given) if method.__name__ == "grad" else method(inputs, outputs, given)
    if len(found) != len(inputs):
        raise ValueError(
            f"Pulling back through {op}: it has {len(inputs)} inputs, and gave {len(found)} gradients"
        )
    return [_checked(op, one) if is_wanted else None for one, is_wanted in zip(found, wanted, strict=True)]


def pushed_forward(op: Op, inputs: Variables, outputs: Variables, tangents: Sequence[Any]) -> Any:
    """Return the tangent of each output (None: it does not change), or NotImplemented if `op` gives none."""
    method = _users_method(op, "pushforward", ("R_op",))
    if method is None:
        return op.pushforward(inputs, outputs, tangents)
    if method.__name__ == "R_op":
        found = method(inputs, list(tangents))
    else:
        found = method(inputs, outputs, [_present(tangent) for tangent in tangents])
    return found if found is NotImplemented else [_checked(op, one) for one in found]


def _users_method(op: Op, name: str, older: Sequence[str]) -> Any:
    """Return the method of this name, or else of an older one, that a user has written; None without one."""
    if not is_user_op(op):
        return None
    if getattr(type(op), name).__module__.partition(".")[0] != "engine":
        return getattr(op, name)
    return next((getattr(op, each) for each in older if hasattr(op, each)), None)


def _present(derivative: Any) -> Any:
    return disconnected_type.make_variable() if derivative is None else derivative


def _checked(op: Op, found: Any) -> Any:
    type_of = getattr(found, "type", None)
    if isinstance(type_of, NullType):
        raise NullGradientError(f"Taking a gradient through {op}: {type_of.why_null}", op)
    return None if isinstance(type_of, DisconnectedType) else found
