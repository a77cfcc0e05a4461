"""Properties of products of matrices."""

from __future__ import annotations

from engine.assumptions.core import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    ORTHOGONAL,
    PERMUTATION,
    SYMMETRIC,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
)
from engine.assumptions.rules.rule import Facts, RuleTable, core_of, inputs_of, rules_for, true_if
from engine.graph.variables import Variable
from engine.tensor.elemwise import DimShuffle
from engine.tensor.matching import tensor_type_of
from engine.tensor.products import Dot


def transposed(variable: Variable) -> Variable | None:
    """Return the matrices of which `variable` has the transposed ones; None if it is no transposition."""
    node = variable.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return None
    ndim = node.op.input_ndim
    is_turned = ndim >= 2 and node.op.new_order == (*range(ndim - 2), ndim - 1, ndim - 2)
    return node.inputs[0] if is_turned else None


def are_transposed(first: Variable, second: Variable) -> bool:
    """Return True if one is the other, transposed."""
    return transposed(first) is second or transposed(second) is first


def factors_of(variable: Variable) -> tuple[Variable, Variable] | None:
    """Return the matrices of a product, or None."""
    if variable.owner is None or not isinstance(core_of(variable), Dot):
        return None
    first, second = inputs_of(variable)
    if min(tensor_type_of(first).ndim, tensor_type_of(second).ndim) < 2:
        return None
    return first, second


def middle_of(variable: Variable) -> Variable | None:
    """Return S if `variable` is M @ S @ M.T, in either order of products; otherwise None."""
    factors = factors_of(variable)
    if factors is None:
        return None
    left, right = factors
    inner = factors_of(right)
    if inner is not None and are_transposed(left, inner[1]):
        return inner[0]
    inner = factors_of(left)
    if inner is not None and are_transposed(inner[0], right):
        return inner[1]
    return None


def _closed(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    factors = factors_of(variable)
    return true_if(factors is not None and all(facts.check(v, key) for v in factors))


def _symmetric(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    factors, middle = factors_of(variable), middle_of(variable)
    if factors is None:
        return FactState.UNKNOWN
    if are_transposed(*factors):
        return FactState.TRUE
    if middle is not None and facts.check(middle, SYMMETRIC):
        return FactState.TRUE
    return true_if(factors[0] is factors[1] and facts.check(factors[0], SYMMETRIC))


RULES: RuleTable = {
    **rules_for((DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR, ORTHOGONAL, PERMUTATION), [Dot], _closed),
    **rules_for((SYMMETRIC,), [Dot], _symmetric),
}
"""A product M @ M.T is positive definite only if M has full rank, which nobody knows: see `assume`."""
