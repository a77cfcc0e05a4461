"""Rules for reductions over axes, cumulative sums and products, and the order of elements."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import All, Argmax, Max, Min, Prod, Sum
from pytensor.tensor.math import Any as AnyOf
from pytensor.tensor.sort import ArgSortOp, SortOp

import engine.tensor as pt
from engine.pytensor.representation import Untranslatable
from engine.pytensor.scope import Rule, Scope


def _accumulated(function: Any) -> Rule:
    def rule(scope: Scope, node: Any, x: Any) -> Any:
        op, dtype = node.op, node.outputs[0].type.dtype
        accumulator = op.acc_dtype or dtype
        # The accumulator may be narrower than PyTensor's dtype of the result, as in the perform of CAReduce.
        found = function(pt.cast(x, accumulator), op.axis, dtype=accumulator, acc_dtype=accumulator)
        return pt.cast(found, dtype)

    return rule


def _extreme(op: Any) -> Rule:
    def rule(scope: Scope, node: Any, x: Any) -> Any:
        return op(node.op.axis, node.op.initial)(x) if x.type.ndim else x

    return rule


def _quantified(function: Any) -> Rule:
    return lambda scope, node, x: function(x, node.op.axis)


def _argmax(scope: Scope, node: Any, x: Any) -> Any:
    return pt.argmax(x, node.op.axis)


def _cumulative(scope: Scope, node: Any, x: Any) -> Any:
    dtype, axis = node.outputs[0].type.dtype, node.op.axis
    x, axis = (pt.flatten(x), 0) if axis is None else (x, axis)
    return pt.CumOp(axis, node.op.mode)(pt.cast(x, dtype))


def _sort(scope: Scope, node: Any, x: Any) -> Any:
    return pt.sort(x, node.op.axis)


def _argsort(scope: Scope, node: Any, x: Any) -> Any:
    if node.op.kind == "heapsort":
        raise Untranslatable("heapsort has an order of its own for equal elements")
    return pt.argsort(x, node.op.axis, stable=node.op.kind in ("stable", "mergesort"))


RULES: dict[type, Rule] = {
    Sum: _accumulated(pt.sum),
    Prod: _accumulated(pt.prod),
    Max: _extreme(pt.Max),
    Min: _extreme(pt.Min),
    All: _quantified(pt.all),
    AnyOf: _quantified(pt.any),
    Argmax: _argmax,
    CumOp: _cumulative,
    SortOp: _sort,
    ArgSortOp: _argsort,
}
