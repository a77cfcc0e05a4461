"""Comparisons, extremes and bitwise operations whose result is known, and branches that are chosen.

A float compared with itself may be NaN: then only x < x and x > x are known. Lengths are not negative.
The result keeps the shape of all operands, by `second`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import copysign
from typing import Any

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar, scalar_op_of
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.op import ScalarOp
from engine.scalar.promotion import DISCRETE, INTEGERS, integer_range
from engine.tensor.creation import alloc
from engine.tensor.elemwise import cast, elemwise
from engine.tensor.matching import dtype_of, scalar_value, tensor_type_of
from engine.tensor.shape import MakeVector
from engine.tensor.signs import is_non_negative

_NEVER: dict[ScalarOp, bool] = {scalar.lt: False, scalar.gt: False}
"""The comparisons that are known for any x beside itself."""
_OF_WHOLE: dict[ScalarOp, bool] = _NEVER | {
    scalar.le: True,
    scalar.ge: True,
    scalar.eq: True,
    scalar.neq: False,
}
_MIRRORED: dict[ScalarOp, ScalarOp] = {
    scalar.lt: scalar.gt,
    scalar.gt: scalar.lt,
    scalar.le: scalar.ge,
    scalar.ge: scalar.le,
    scalar.eq: scalar.eq,
    scalar.neq: scalar.neq,
}
_KEEPING = (scalar.maximum, scalar.minimum, scalar.and_, scalar.or_)
"""f(x, x) is x."""
_NEUTRAL: dict[ScalarOp, bool] = {scalar.and_: True, scalar.or_: False}
"""The bits, all set or none, that leave the other operand as it is."""


@node_rewriter([elemwise(op) for op in (*_OF_WHOLE, *_KEEPING, scalar.xor)])
def local_useless_elemwise_comparison(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x < x -> False; maximum(x, x) -> x; n < 0 -> False, maximum(n, 0) -> n for a length n, or for a vector
    of them; x & 0 -> 0, and the like.
    """
    x, y = node.inputs
    if x is y:
        return _with_itself(node, x)
    if scalar_op_of(node) in _NEUTRAL:
        return _with_bits(node, x, y)
    found = _of_length(scalar_op_of(node), x, scalar_value(y))
    if found is None:
        op = scalar_op_of(node)
        found = _of_length(_MIRRORED.get(op, op), y, scalar_value(x))
    return None if found is None else _shaped(node, found, node.inputs)


def _with_itself(node: Apply, x: Variable) -> list[Variable] | None:
    op = scalar_op_of(node)
    if op in _KEEPING:
        return _shaped(node, x, ())
    if op == scalar.xor:
        return _shaped(node, 0, (x,))
    known = (_OF_WHOLE if dtype_of(x) in DISCRETE else _NEVER).get(op)
    return None if known is None else _shaped(node, known, (x,))


def _with_bits(node: Apply, x: Variable, y: Variable) -> list[Variable] | None:
    """Return x & 0, which is 0, x | 0, which is x, and the same with all bits set; otherwise None."""
    dtype = dtype_of(node.outputs[0])
    neutral = _NEUTRAL[scalar_op_of(node)]
    for bits, other in ((x, y), (y, x)):
        value = scalar_value(bits)
        is_full = value is not None and dtype_of(bits) == dtype and value == _full(dtype)
        if is_full or value == 0:
            return _shaped(node, other if is_full == neutral else cast(bits, dtype), node.inputs)
    return None


def _full(dtype: str) -> int:
    """Return the number of an integer dtype in which all bits are set."""
    return 1 if dtype == "bool" else -1 if dtype.startswith("int") else integer_range(dtype)[-1]


def _of_length(op: Any, length: Variable, bound: Any) -> Any:
    """Return `op` of a length, or of a vector of lengths, and the number `bound`: a number, or the lengths,
    if it is known; or None.
    """
    if bound is None or bound > 0 or dtype_of(length) != "int64":
        return None
    if not _written_lengths(length) and (tensor_type_of(length).ndim or not is_non_negative(length)):
        return None
    if op == scalar.maximum:
        return length
    if op == scalar.minimum:
        return bound
    known: dict[ScalarOp, bool] = {scalar.lt: False, scalar.ge: True}
    if bound < 0:
        known |= {scalar.le: False, scalar.gt: True, scalar.eq: False, scalar.neq: True}
    return known.get(op)


def _written_lengths(v: Variable) -> Sequence[Variable]:
    """Return the elements of a vector that is written by them, if all are lengths; otherwise none."""
    elements = v.owner.inputs if v.owner is not None and isinstance(v.owner.op, MakeVector) else ()
    return elements if all(is_non_negative(element) for element in elements) else ()


@node_rewriter([elemwise(scalar.where)])
def local_useless_switch(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """where(True, a, b) -> a; where(False, a, b) -> b; where(c, a, a) -> a."""
    condition, first, second = node.inputs
    known = scalar_value(condition)
    if known is not None:
        return _shaped(node, first if known else second, node.inputs)
    same = first is second or _is_same(scalar_value(first), scalar_value(second))
    return _shaped(node, first, node.inputs) if same else None


def _is_same(first: float | None, second: float | None) -> bool:
    """Return True for two equal numbers; zeros of both signs are equal, and not the same."""
    if first is None or second is None or first != second:
        return False
    return copysign(1, first) == copysign(1, second)


@node_rewriter([elemwise(scalar.floor_div)])
def local_int_div_by_one(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """n // 1 -> n for integers n."""
    x, divisor = node.inputs
    is_known = scalar_value(divisor) == 1 and dtype_of(x) in INTEGERS
    return _shaped(node, x, (divisor,)) if is_known else None


def _shaped(node: Apply, found: Any, others: Iterable[Variable]) -> list[Variable] | None:
    """Return `found` in the dtype of the output of `node` and in the shape of the `others` too."""
    output = node.outputs[0]
    result: Variable = cast(found, dtype_of(output))
    for other in others:
        if other is found or all(tensor_type_of(other).broadcastable):
            continue
        written = _written_lengths(other) if all(tensor_type_of(result).broadcastable) else ()
        # Lengths are not computed for the place of a number alone.
        result = alloc(result, len(written)) if written else apply_scalar(scalar.second, other, result)
    missing = tensor_type_of(output).ndim - tensor_type_of(result).ndim
    return None if missing else typed(node, result)
