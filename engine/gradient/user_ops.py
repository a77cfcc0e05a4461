"""Derivatives of nodes. User Ops follow PyTensor's protocol, which has variables for what is absent.

An output without a cotangent has one of DisconnectedType; so has an input that no output depends on. A
gradient of NullType is refused if it is needed. Ops with PyTensor's older methods `L_op` and `grad` instead
of `pullback`, or `R_op` instead of `pushforward`, are served too: `R_op` is given None, and gives None.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from engine.graph.op import Op
from engine.graph.user_ops import given_by_user, given_to_user, users_method
from engine.graph.variables import Variable
from engine.scalar.op import ScalarOp
from engine.tensor.blockwise import Blockwise
from engine.tensor.elemwise import elemwise
from engine.tensor.single_numbers import tensor_from_scalar

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
    if isinstance(op, ScalarOp):
        return elemwise(op).pullback_wanted(_as_tensors(inputs), _as_tensors(outputs), cotangents, wanted)
    method = users_method(op, "pullback", ("L_op", "grad"))
    if method is None:
        return op.pullback_wanted(inputs, outputs, cotangents, wanted)
    given = [given_to_user(cotangent) for cotangent in cotangents]
    found = method(inputs, given) if method.__name__ == "grad" else method(inputs, outputs, given)
    if len(found) != len(inputs):
        raise ValueError(
            f"Pulling back through {op}: it has {len(inputs)} inputs, and gave {len(found)} gradients"
        )
    return [
        given_by_user(op, one) if is_wanted else None for one, is_wanted in zip(found, wanted, strict=True)
    ]


def pushed_forward(op: Op, inputs: Variables, outputs: Variables, tangents: Sequence[Any]) -> Any:
    """Return the tangent of each output (None: it does not change), or NotImplemented if `op` gives none."""
    if isinstance(op, ScalarOp):
        return elemwise(op).pushforward(_as_tensors(inputs), _as_tensors(outputs), tangents)
    method = users_method(op, "pushforward", ("R_op",))
    if method is None:
        return op.pushforward(inputs, outputs, tangents)
    if method.__name__ == "R_op":
        found = method(inputs, list(tangents))
    else:
        found = method(inputs, outputs, [given_to_user(tangent) for tangent in tangents])
    return found if found is NotImplemented else [given_by_user(op, one) for one in found]


def _as_tensors(numbers: Variables) -> list[Any]:
    return [tensor_from_scalar(number) for number in numbers]
