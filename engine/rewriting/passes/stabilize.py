"""Expressions that lose digits or overflow, replaced by functions that do not.

These change values on purpose: where the expression as written overflows or cancels, the result is the one that
exact arithmetic would give.
"""

from __future__ import annotations

from engine.rewriting.pattern import PatternNodeRewriter
from engine.scalar import add, exp, expm1, log, log1p, mul, neg, reciprocal, sigmoid, softplus, sub, true_div

STABILIZE = (
    PatternNodeRewriter("local_log_exp", (log, (exp, "x")), "x"),
    PatternNodeRewriter("local_log_sigmoid", (log, (sigmoid, "x")), (neg, (softplus, (neg, "x")))),
    PatternNodeRewriter("local_log_1m_sigmoid", (log, (sub, 1, (sigmoid, "x"))), (neg, (softplus, "x"))),
    PatternNodeRewriter("local_log1p_neg_sigmoid", (log1p, (neg, (sigmoid, "x"))), (neg, (softplus, "x"))),
    PatternNodeRewriter("local_log1p_exp", (log1p, (exp, "x")), (softplus, "x")),
    PatternNodeRewriter("local_log1p", (log, (add, 1, "x")), (log1p, "x")),
    PatternNodeRewriter("local_log_1m", (log, (sub, 1, "x")), (log1p, (neg, "x"))),
    PatternNodeRewriter("local_expm1", (sub, (exp, "x"), 1), (expm1, "x")),
    PatternNodeRewriter("local_expm1_add", (add, (exp, "x"), -1), (expm1, "x")),
    PatternNodeRewriter("local_one_over_1p_exp", (reciprocal, (add, 1, (exp, "x"))), (sigmoid, (neg, "x"))),
    PatternNodeRewriter("local_sigmoid_ratio", (true_div, (exp, "x"), (add, 1, (exp, "x"))), (sigmoid, "x")),
    PatternNodeRewriter("local_sigmoid_product", (mul, (sigmoid, (neg, "x")), (exp, "x")), (sigmoid, "x")),
    PatternNodeRewriter(
        "local_sigmoid_multiple",
        (mul, (true_div, "g", (add, 1, (exp, "x"))), (exp, "x")),
        (mul, "g", (sigmoid, "x")),
    ),
)
