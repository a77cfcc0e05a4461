"""Expressions that lose digits or overflow, replaced by functions that do not.

These change values on purpose: where the written expression overflows or cancels, the result is that of
exact arithmetic.
"""

from __future__ import annotations

import math

from engine.gradient.stable_forms import STABILIZED, stable_form
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import ElementwisePattern, apply_scalar, scalar_op_of
from engine.rewriting.passes.arithmetic import as_output
from engine.rewriting.passes.exponentials import is_read_as_exponential, local_exp_of_result
from engine.rewriting.passes.softmaxes import local_exp_log_softmax, local_log_softmax_from_logsumexp
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import add, erf, erfc, exp, expm1, log, log1p, mul, neg, sigmoid, sub
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.elemwise import DimShuffle, cast, dimshuffle, elemwise
from engine.tensor.matching import DEEPEST, dtype_of, operands_of, scalar_value


@node_rewriter([elemwise(op) for op in STABILIZED])
def local_stable_form(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Rewrite logarithms, quotients and roots to the forms that gradients use too.

    exp(log1p(x)) stays while a logarithm or quotient of a sum has a form that reads it as an exponential:
    log(exp(log1p(x)) + exp(y)) overflows as log(1 + x + exp(y)). It stays next to a 1 of the other sign,
    too: expm1(log1p(x)) is x.
    """
    form = stable_form(node)
    if form is None or (scalar_op_of(node) == exp and is_read_as_exponential(fgraph, node)):
        return None
    return [form]


@node_rewriter([elemwise(add), elemwise(sub)])
def local_sum_of_constants(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """(x + c) + d -> x + (c + d), with any signs; x where c and d cancel, but x + 0.0 where both are 0: it is
    0.0 where x is -0.0.
    """
    outer = _shifted(node.outputs[0])
    inner = None if outer is None else _shifted(outer[1])
    if outer is None or inner is None:
        return None
    sign, number = outer[0] * inner[0], outer[0] * inner[2] + outer[2]
    if not math.isfinite(number):
        return None
    x = inner[1] if sign > 0 else apply_scalar(neg, inner[1])
    cancels = number == 0 != outer[2]
    return as_output(x if cancels else apply_scalar(add, x, cast(number, dtype_of(x))), node)


def _shifted(v: Variable, steps: int = DEEPEST) -> tuple[int, Variable, float] | None:
    """Return (s, x, c) if `v` is s * x + c, for a sign s, a finite number c, and x of the float dtype of `v`.

    Its axes may stand in another order, or be new.
    """
    if v.owner is not None and isinstance(v.owner.op, DimShuffle):
        found = _shifted(v.owner.inputs[0], steps - 1) if steps else None
        return None if found is None else (found[0], dimshuffle(found[1], v.owner.op.new_order), found[2])
    terms, difference = operands_of(v, add), operands_of(v, sub)
    operands = terms or difference
    if operands is None or dtype_of(v) not in COMPILED_FLOATS:
        return None
    (first, second), is_sum = operands, terms is not None
    one, other = scalar_value(first), scalar_value(second)
    if (one is None) == (other is None) or dtype_of(first if one is None else second) != dtype_of(v):
        return None
    if one is None:
        return 1, first, other if is_sum else -other
    return (1 if is_sum else -1), second, one


STABILIZE = (
    local_stable_form,
    local_sum_of_constants,
    local_exp_of_result,
    local_log_softmax_from_logsumexp,
    local_exp_log_softmax,
    ElementwisePattern("local_log1p", (log, (add, 1, "x")), (log1p, "x")),
    ElementwisePattern("local_log_1m", (log, (sub, 1, "x")), (log1p, (neg, "x"))),
    ElementwisePattern("local_expm1", (sub, (exp, "x"), 1), (expm1, "x")),
    ElementwisePattern("local_expm1_add", (add, (exp, "x"), -1), (expm1, "x")),
    ElementwisePattern("local_1m_exp", (sub, 1, (exp, "x")), (neg, (expm1, "x"))),
    ElementwisePattern("local_1m_sigmoid", (sub, 1, (sigmoid, "x")), (sigmoid, (neg, "x"))),
    ElementwisePattern("local_sigmoid_m1", (sub, (sigmoid, "x"), 1), (neg, (sigmoid, (neg, "x")))),
    ElementwisePattern("local_sigmoid_m1_add", (add, (sigmoid, "x"), -1), (neg, (sigmoid, (neg, "x")))),
    ElementwisePattern("local_sigmoid_product", (mul, (sigmoid, (neg, "x")), (exp, "x")), (sigmoid, "x")),
    ElementwisePattern(
        "local_sigmoid_product_neg", (mul, (sigmoid, "x"), (exp, (neg, "x"))), (sigmoid, (neg, "x"))
    ),
    ElementwisePattern(
        "local_sigmoid_multiple",
        (mul, (mul, "g", (sigmoid, (neg, "x"))), (exp, "x")),
        (mul, "g", (sigmoid, "x")),
    ),
    ElementwisePattern("local_1p_erf", (add, 1, (erf, "x")), (erfc, (neg, "x"))),
    ElementwisePattern("local_1m_erf", (sub, 1, (erf, "x")), (erfc, "x")),
    ElementwisePattern("local_erf_m1", (sub, (erf, "x"), 1), (neg, (erfc, "x"))),
    ElementwisePattern("local_erf_m1_add", (add, (erf, "x"), -1), (neg, (erfc, "x"))),
    ElementwisePattern("local_1m_erfc", (sub, 1, (erfc, "x")), (erf, "x")),
)
