"""Expressions that lose digits or overflow, replaced by functions that do not.

These change values on purpose: where the written expression overflows or cancels, the result is that of
exact arithmetic.
"""

from __future__ import annotations

from engine.gradient.stable_forms import STABILIZED, stable_form
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import ElementwisePattern
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import add, erf, erfc, exp, expm1, log, log1p, mul, neg, sigmoid, sub
from engine.tensor.elemwise import elemwise


@node_rewriter([elemwise(op) for op in STABILIZED])
def local_stable_form(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Rewrite logarithms, quotients and roots to the forms that gradients use too."""
    form = stable_form(node)
    return None if form is None else [form]


STABILIZE = (
    local_stable_form,
    ElementwisePattern("local_log1p", (log, (add, 1, "x")), (log1p, "x")),
    ElementwisePattern("local_log_1m", (log, (sub, 1, "x")), (log1p, (neg, "x"))),
    ElementwisePattern("local_expm1", (sub, (exp, "x"), 1), (expm1, "x")),
    ElementwisePattern("local_expm1_add", (add, (exp, "x"), -1), (expm1, "x")),
    ElementwisePattern("local_1m_sigmoid", (sub, 1, (sigmoid, "x")), (sigmoid, (neg, "x"))),
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
