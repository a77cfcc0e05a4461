"""Patterns of elementwise operations, which rewrites match and build.

A pattern is a variable (a string), a number (a constant of one element with that value), or a tuple of a
scalar Op and a pattern for each argument. The arguments of `add` and `mul` match in either order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import NodeRewriter, Tracked
from engine.scalar import ScalarOp
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.elemwise import Elemwise, elemwise
from engine.tensor.matching import dtype_of, operands_of, scalar_value

Pattern = tuple[Any, ...] | str | float
Bindings = dict[str, Variable]

COMMUTATIVE = (scalar.add, scalar.mul)


class ElementwisePattern(NodeRewriter):
    """A rewrite of matches of `pattern` to `result`, a pattern of the same variables.

    It applies only if every operation of the match computes in the float dtype of the outermost one, so
    that nothing is rounded or wraps in between, and if the result has the right type.
    """

    def __init__(self, name: str, pattern: tuple[Any, ...], result: Pattern) -> None:
        self.name = name
        self.pattern = pattern
        self.result = result

    def tracks(self) -> Sequence[Tracked]:
        return (elemwise(self.pattern[0]),)

    def transform(self, fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
        output = node.outputs[0]
        if dtype_of(output) not in COMPILED_FLOATS:
            return None
        bindings = _match(self.pattern, output, dtype_of(output), {})
        if bindings is None:
            return None
        return typed(node, _build(self.result, bindings))


def _match(pattern: Pattern, variable: Variable, dtype: str, bindings: Bindings) -> Bindings | None:
    """Return `bindings` extended by the variables of `pattern` in `variable`; None without a match."""
    if not isinstance(pattern, tuple | str):  # a number is converted without rounding
        return bindings if scalar_value(variable) == pattern else None
    if dtype_of(variable) != dtype:
        return None
    if isinstance(pattern, str):
        known = bindings.get(pattern, variable)
        return {**bindings, pattern: variable} if known is variable else None
    operands = operands_of(variable, pattern[0])
    if operands is None:
        return None
    orders = [operands, operands[::-1]] if pattern[0] in COMMUTATIVE else [operands]
    for order in orders:
        found = _match_all(pattern[1:], order, dtype, bindings)
        if found is not None:
            return found
    return None


def _match_all(
    patterns: Sequence[Pattern], variables: Sequence[Variable], dtype: str, bindings: Bindings
) -> Bindings | None:
    for pattern, variable in zip(patterns, variables, strict=True):
        found = _match(pattern, variable, dtype, bindings)
        if found is None:
            return None
        bindings = found
    return bindings


def _build(pattern: Pattern, bindings: Bindings) -> Variable:
    if isinstance(pattern, str):
        return bindings[pattern]
    assert isinstance(pattern, tuple)
    arguments = [a if isinstance(a, int | float) else _build(a, bindings) for a in pattern[1:]]
    return apply_scalar(pattern[0], *arguments)


def apply_scalar(op: ScalarOp, *inputs: Any) -> Variable:
    """Return `op` applied to tensors and numbers, element by element."""
    return elemwise(op).make_node(*inputs).outputs[0]


def folded(op: ScalarOp, operands: Sequence[Any]) -> Any:
    """Return `op` of the first two operands, of that and the third, and so on; of one operand, itself."""
    return reduce(lambda x, y: apply_scalar(op, x, y), operands)


def scalar_op_of(node: Apply) -> ScalarOp:
    """Return the scalar Op that `node`, an Elemwise, applies."""
    return cast(Elemwise, node.op).scalar_op
