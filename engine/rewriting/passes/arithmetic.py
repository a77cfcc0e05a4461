"""Neutral elements, signs, quotients, powers with a constant exponent, and products of branches.

Rewrites must be exact for every float. `x + 0.0` turns -0.0 into 0.0, so it stays unless x cannot be -0.0
or is no float; `x + (-0.0)` and `x - 0.0` become x. A product of matrices counts as one that cannot: it adds
to 0.0, and is -0.0 only where BLAS rounds what underflows to it. `x * 0` stays: it is NaN where x is
infinite. Moving signs in a product or sum keeps the number, but a NaN may get another sign. Constant
factors are multiplied if one is a power of two: the result is the same unless one factor alone makes x
overflow, or lose digits below the normal numbers. `x ** 0.5` becomes `sqrt(x)`, as in numpy's own operator:
they differ for x = -inf (inf and NaN) and x = -0.0 (0.0 and -0.0).

Products and quotients of a branch that is 0 outside are 0 there, whatever the other factor: so
`switch(inside, 1, 0) * log(x)`, and gradients of it, are 0 where the logarithm is infinite or NaN, as in
PyTensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.graph.user_ops import is_user_op
from engine.rewriting.elementwise_pattern import apply_scalar, scalar_op_of
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor.elemwise import DimShuffle, Elemwise, cast, dimshuffle, elemwise, split, within
from engine.tensor.matching import dtype_of, operands_of, scalar_value
from engine.tensor.products import Dot

NEVER_NEGATIVE_ZERO = ("exp", "sqr", "abs", "sigmoid", "softplus")


def as_output(variable: Variable, node: Apply) -> list[Variable] | None:
    """Return `variable`, cast to the dtype of the output of `node`; None if the types still differ."""
    result = cast(variable, dtype_of(node.outputs[0]))
    return typed(node, result)


@node_rewriter([elemwise(scalar.add)])
def local_add_zero(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x + 0 -> x, if that is exact."""
    for zero, other in (node.inputs, node.inputs[::-1]):
        if scalar_value(zero) == 0 and _is_neutral_zero(zero, other, dtype_of(node.outputs[0])):
            return as_output(other, node)
    return None


def _is_neutral_zero(zero: Variable, other: Variable, dtype: str) -> bool:
    if dtype not in FLOATS or math.copysign(1.0, scalar_value(zero)) < 0:
        return True
    owner = other.owner
    if owner is None:
        return dtype_of(other) not in FLOATS
    if isinstance(owner.op, Dot):
        return True
    if not isinstance(owner.op, Elemwise) or is_user_op(owner.op.scalar_op):
        return False
    return owner.op.scalar_op.name in NEVER_NEGATIVE_ZERO


@node_rewriter([elemwise(scalar.sub)])
def local_sub_zero(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x - 0 -> x; -0.0 - x -> -x (of integers 0 - x -> -x)."""
    left, right = node.inputs
    dtype = dtype_of(node.outputs[0])
    if scalar_value(right) == 0 and (dtype not in FLOATS or math.copysign(1.0, scalar_value(right)) > 0):
        return as_output(left, node)
    if scalar_value(left) == 0 and (dtype not in FLOATS or math.copysign(1.0, scalar_value(left)) < 0):
        return as_output(apply_scalar(scalar.neg, cast(right, dtype)), node)
    return None


@node_rewriter([elemwise(scalar.mul)])
def local_mul_one(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x * 1 -> x; x * -1 -> -x."""
    dtype = dtype_of(node.outputs[0])
    for factor, other in (node.inputs, node.inputs[::-1]):
        if scalar_value(factor) == 1:
            return as_output(other, node)
        if scalar_value(factor) == -1:
            return as_output(apply_scalar(scalar.neg, cast(other, dtype)), node)
    return None


@node_rewriter([elemwise(scalar.mul)])
def local_mul_constants(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """c * (d * x) -> (c * d) * x for float constants c and d, if one is a power of two."""
    for outer, product in (node.inputs, node.inputs[::-1]):
        operands = operands_of(product, scalar.mul)
        if operands is None or not _is_float_constant(outer, node):
            continue
        for inner, x in (operands, operands[::-1]):
            if _is_float_constant(inner, node) and _is_power_of_two(scalar_value(outer), scalar_value(inner)):
                return as_output(apply_scalar(scalar.mul, apply_scalar(scalar.mul, outer, inner), x), node)
    return None


@node_rewriter([elemwise(scalar.true_div)])
def local_div_by_constant(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x / 1 -> x; x / -1 -> -x; x / 2**k -> x * 2**-k, if that power is a normal number of the dtype."""
    left, right = node.inputs
    dtype = dtype_of(node.outputs[0])
    divisor = scalar_value(right)
    if divisor is None:
        return None
    if divisor == 1:
        return as_output(left, node)
    if divisor == -1:
        return as_output(apply_scalar(scalar.neg, cast(left, dtype)), node)
    if not _is_power_of_two(float(divisor)):
        return None
    return as_output(apply_scalar(scalar.mul, cast(left, dtype), 1.0 / float(divisor)), node)


def _is_power_of_two(*values: float) -> bool:
    """Return True if a value is +-2**k, with 2**k and 2**-k normal numbers of every float dtype."""
    found = [math.frexp(value) for value in values if math.isfinite(value)]
    return any(abs(mantissa) == 0.5 and -120 < exponent < 120 for mantissa, exponent in found)


@node_rewriter([elemwise(scalar.neg)])
def local_neg(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """-(-x) -> x; -(x * c) -> x * -c; -(c / x) -> -c / x."""
    (x,) = node.inputs
    inner = operands_of(x, scalar.neg)
    if inner is not None:
        return as_output(inner[0], node)
    if dtype_of(x) not in FLOATS:
        return None
    for op in (scalar.mul, scalar.true_div):
        operands = operands_of(x, op)
        if operands is None:
            continue
        for position, operand in enumerate(operands):
            if (
                isinstance(operand, Constant)
                and dtype_of(operand) == dtype_of(x)
                and scalar_value(operand) is not None
            ):
                negated = list(operands)
                negated[position] = apply_scalar(scalar.neg, operand)
                return as_output(apply_scalar(op, *negated), node)
    return None


@node_rewriter([elemwise(scalar.add), elemwise(scalar.sub)])
def local_add_sub_neg(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """a + -b -> a - b; -a + b -> b - a; a - -b -> a + b, of floats; x - -5.0 -> x + 5.0."""
    left, right = node.inputs
    op = scalar_op_of(node)
    number = scalar_value(right)
    if op == scalar.sub and number is not None and number < 0 and _is_float_constant(right, node):
        return as_output(apply_scalar(scalar.add, left, apply_scalar(scalar.neg, right)), node)
    negated = _negated(right, node)
    if negated is not None:
        return as_output(apply_scalar(scalar.sub if op == scalar.add else scalar.add, left, negated), node)
    negated = _negated(left, node)
    if negated is not None and op == scalar.add:
        return as_output(apply_scalar(scalar.sub, right, negated), node)
    return None


@node_rewriter([elemwise(scalar.mul), elemwise(scalar.true_div)])
def local_mul_div_neg(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Move or drop signs in products and quotients of floats.

    -a * -b -> a * b; -a / -b -> a / b; -a * c -> a * -c; -a / c -> a / -c, c / -a -> -c / a.
    """
    left, right = node.inputs
    op = scalar_op_of(node)
    first, second = _negated(left, node), _negated(right, node)
    if first is not None and second is not None:
        return as_output(apply_scalar(op, first, second), node)
    if first is not None and _is_float_constant(right, node):
        return as_output(apply_scalar(op, first, apply_scalar(scalar.neg, right)), node)
    if second is not None and _is_float_constant(left, node):
        return as_output(apply_scalar(op, apply_scalar(scalar.neg, left), second), node)
    return None


def _is_float_constant(variable: Variable, node: Apply) -> bool:
    return scalar_value(variable) is not None and dtype_of(variable) == dtype_of(node.outputs[0])


def _negated(variable: Variable, node: Apply) -> Variable | None:
    """Return x if `variable` is -x, with the float dtype of the output of `node`, or with other axes the same
    elements; else None.
    """
    if dtype_of(variable) not in FLOATS or dtype_of(variable) != dtype_of(node.outputs[0]):
        return None
    moved = variable.owner
    if moved is not None and isinstance(moved.op, DimShuffle):
        operands = operands_of(moved.inputs[0], scalar.neg)
        return None if operands is None else dimshuffle(operands[0], moved.op.new_order)
    operands = operands_of(variable, scalar.neg)
    return None if operands is None else operands[0]


@node_rewriter([elemwise(scalar.true_div)])
def local_one_over(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """1 / x -> reciprocal(x)."""
    left, right = node.inputs
    if scalar_value(left) != 1 or dtype_of(right) != dtype_of(node.outputs[0]):
        return None
    return as_output(apply_scalar(scalar.reciprocal, right), node)


OF_FLOATS = {0.5: scalar.sqrt, -1: scalar.reciprocal}


@node_rewriter([elemwise(scalar.pow)])
def local_pow_constant(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """1 ** x -> 1; x ** 0 -> 1; x ** 1 -> x; x ** 2 -> sqr(x).

    Of floats: x ** 0.5 -> sqrt(x); x ** -1 -> reciprocal(x).
    """
    base, exponent = node.inputs
    dtype = dtype_of(node.outputs[0])
    value = scalar_value(exponent)
    if scalar_value(base) == 1:
        return as_output(apply_scalar(scalar.second, exponent, cast(1, dtype)), node)
    if value is None:
        return None
    base = cast(base, dtype)
    if value == 0:
        return as_output(apply_scalar(scalar.second, base, cast(1, dtype)), node)
    if value == 1:
        return as_output(base, node)
    if value == 2:
        return as_output(apply_scalar(scalar.sqr, base), node)
    if dtype in FLOATS and value in OF_FLOATS:
        return as_output(apply_scalar(OF_FLOATS[value], base), node)
    return None


@node_rewriter([elemwise(scalar.mul)])
def local_mul_switch_sink(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """where(c, a, 0) * b -> where(c, a * b, 0), of floats, or of a float and a truth value."""
    if not sinks_branches(node):
        return _beside_truth(node, node.inputs) or _beside_truth(node, node.inputs[::-1])
    return typed(node, within(*split(node.outputs[0])))


@node_rewriter([elemwise(scalar.true_div)])
def local_div_switch_sink(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """where(c, a, 0) / b -> where(c, a / b, 0), of floats, or of a float and a truth value."""
    if not sinks_branches(node):
        return _beside_truth(node, node.inputs)
    branches, found = split(node.inputs[0])
    return typed(node, within(branches, apply_scalar(scalar.true_div, found, node.inputs[1])))


def _beside_truth(node: Apply, inputs: Sequence[Variable]) -> list[Variable] | None:
    """Return where(c, f(a, p), 0) if `inputs` are where(c, a, 0) and a truth value p; f is that of `node`.

    a may be of a narrower dtype than the result: no digit is lost beside 0 and 1.
    """
    operands = operands_of(inputs[0], scalar.where)
    if operands is None or dtype_of(inputs[1]) != "bool":
        return None
    condition, *branches = operands
    for place, branch in enumerate(branches):
        if scalar_value(branches[1 - place]) == 0 and dtype_of(branch) in FLOATS:
            branches[place] = apply_scalar(scalar_op_of(node), branch, inputs[1])
            return typed(node, apply_scalar(scalar.where, condition, *branches))
    return None


def sinks_branches(node: Apply) -> bool:
    """Return True for a product or quotient that goes into the branches of what it is made of."""
    if node.op == elemwise(scalar.mul):
        return _are_floats(node) and bool(split(node.outputs[0])[0])
    return node.op == elemwise(scalar.true_div) and _are_floats(node) and bool(split(node.inputs[0])[0])


def _are_floats(node: Apply) -> bool:
    dtype = dtype_of(node.outputs[0])
    return dtype in FLOATS and all(dtype_of(variable) == dtype for variable in node.inputs)
