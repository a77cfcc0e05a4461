"""Rules for elementwise Ops, the reordering of axes, and what stands between tensors and scalars."""

from __future__ import annotations

from typing import Any

from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise

import engine.tensor as pt
from engine.pytensor.rules.scalar_ops import apply_scalar_op
from engine.pytensor.scope import Rule, Scope


def _elementwise(scope: Scope, node: Any, *inputs: Any) -> list[Any]:
    return apply_scalar_op(node.op.scalar_op, [v.type.dtype for v in node.outputs], inputs)


def scalar(scope: Scope, node: Any, *inputs: Any) -> list[Any]:
    """Return the results of a scalar Op that is a node of its own, on 0-d tensors."""
    return apply_scalar_op(node.op, [v.type.dtype for v in node.outputs], inputs)


def _dimshuffle(scope: Scope, node: Any, x: Any) -> Any:
    return pt.dimshuffle(x, node.op.new_order)


def same(scope: Scope, node: Any, x: Any) -> Any:
    """Return the input."""
    return x


RULES: dict[type, Rule] = {
    Elemwise: _elementwise,
    DimShuffle: _dimshuffle,
    # Results of a function of the engine are in memory of their own.
    DeepCopyOp: same,
    ViewOp: same,
    ScalarFromTensor: same,
    TensorFromScalar: same,
}

__all__ = ["RULES", "ScalarOp", "same", "scalar"]
