"""Quotients in exponentials and logarithms apart, as PyTensor's set `specialize` writes them.

Who rewrites by that set gets these forms; functions do not have them. y * exp(-x) overflows where exp(x) is
below the normal numbers, and a difference of logarithms has fewer digits where both are large.
"""

from __future__ import annotations

import math

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import ElementwisePattern, apply_scalar
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import exp, log, mul, neg, sub, true_div
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.elemwise import elemwise
from engine.tensor.matching import dtype_of, operands_of, scalar_value

local_div_exp_to_mul_exp = ElementwisePattern(
    "local_div_exp_to_mul_exp", (true_div, "y", (exp, "x")), (mul, "y", (exp, (neg, "x")))
)
"""y / exp(x) -> y * exp(-x)."""


@node_rewriter([elemwise(log)])
def local_log_div(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """log(x / c) -> log(x) - log(c) for a positive number c."""
    operands = operands_of(node.inputs[0], true_div)
    if (
        operands is None
        or dtype_of(operands[0]) != dtype_of(node.outputs[0])
        or not _is_positive(operands[1])
    ):
        return None
    x, number = operands
    return typed(node, apply_scalar(sub, apply_scalar(log, x), apply_scalar(log, number)))


def _is_positive(number: Variable) -> bool:
    """Return True for one positive number of a float dtype."""
    value = scalar_value(number)
    return value is not None and dtype_of(number) in COMPILED_FLOATS and 0 < value < math.inf


SPECIALIZED = (local_div_exp_to_mul_exp, local_log_div)
