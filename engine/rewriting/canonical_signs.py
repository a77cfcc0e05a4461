"""Signs as factors, the form that PyTensor gives them, for those who ask for this rewriter by its name.

A library that looks for factors finds a sign among them. Functions are not rewritten so: a sign costs less
than a product, and `local_mul_one` makes one of a factor -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import folded
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import INEXACT
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import elemwise
from engine.tensor.matching import DEEPEST, dtype_of, operands_of
from engine.tensor.variable import TensorConstant


@node_rewriter([elemwise(scalar.neg)])
def local_neg_to_mul(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """-x -> -1 * x; -(x * c) -> x * -c for a constant c; -(x * y) -> -1 * x * y; -(-x) -> x."""
    (x,) = node.inputs
    dtype, negated = dtype_of(x), operands_of(x, scalar.neg)
    if negated is not None:
        found: Any = negated[0]
    elif dtype == "bool":
        return None
    else:
        found = folded(scalar.mul, _negative(factors_of(x), dtype))
    return typed(node, found)


def factors_of(x: Variable, steps: int = DEEPEST) -> list[Any]:
    """Return the factors of a product of products, from the left; of anything else, itself."""
    operands = operands_of(x, scalar.mul) if steps else None
    return [x] if operands is None else [*factors_of(operands[0], steps - 1), operands[1]]


def _negative(factors: Sequence[Any], dtype: str) -> list[Any]:
    """Return factors whose product is the negative: one constant is negated, or a -1 comes first.

    A whole number of a narrower dtype than the product's stays: the negative of its smallest wraps.
    """
    found = list(factors)
    for place, factor in enumerate(factors):
        if not isinstance(factor, TensorConstant) or factor.is_data:
            continue
        if dtype_of(factor) in INEXACT or dtype_of(factor) == dtype:
            found[place] = as_tensor_variable(np.negative(factor.data))
            return found
    return [as_tensor_variable(np.negative(np.ones((), dtype))), *found]
