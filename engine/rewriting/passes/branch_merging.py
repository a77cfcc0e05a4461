"""Branches of one condition in one operation: of two choices one is left.

An operation that costs more than a choice stays: it would be computed for both branches.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar, scalar_op_of
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.elemwise import cast, elemwise
from engine.tensor.matching import dtype_of, operands_of

CHEAP = (
    *(scalar.add, scalar.sub, scalar.mul, scalar.true_div, scalar.floor_div),
    *(scalar.minimum, scalar.maximum, scalar.and_, scalar.or_, scalar.xor),
    *(scalar.lt, scalar.gt, scalar.le, scalar.ge, scalar.eq, scalar.neq),
)


@node_rewriter([elemwise(op) for op in CHEAP])
def local_merge_switch_same_cond(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(where(c, a, b), where(c, x, y)) -> where(c, f(a, x), f(b, y)), if nothing else uses the choices."""
    choices = [operands_of(v, scalar.where) for v in node.inputs]
    if None in choices or any(len(fgraph.clients[v]) != 1 for v in node.inputs):
        return None
    condition, taken, other = zip(*[found for found in choices if found is not None], strict=True)
    if any(v is not condition[0] for v in condition[1:]):
        return None
    branches = [_applied(node, values) for values in (taken, other)]
    found = apply_scalar(scalar.where, condition[0], *branches)
    return typed(node, found)


def _applied(node: Apply, values: Sequence[Variable]) -> Variable:
    """Return the operation of `node` on `values`, in the dtypes that the choices between them have."""
    typed = [cast(value, dtype_of(choice)) for value, choice in zip(values, node.inputs, strict=True)]
    return apply_scalar(scalar_op_of(node), *typed)
