"""Properties of matrices that are made: unit matrices, diagonals, blocks, and filled ones."""

from __future__ import annotations

from engine.assumptions.core import (
    ALL_KEYS,
    DIAGONAL,
    LOWER_TRIANGULAR,
    MATRIX_KEYS,
    POSITIVE_DEFINITE,
    SELECTION,
    SYMMETRIC,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
)
from engine.assumptions.rules.rule import (
    Facts,
    RuleTable,
    all_have_it,
    core_of,
    has_square_matrices,
    inputs_of,
    is_whole_matrix,
    rules_for,
    true_if,
)
from engine.graph.variables import Variable
from engine.inner.diagonals import AllocDiag
from engine.tensor.creation import Alloc
from engine.tensor.diagonals import Eye
from engine.tensor.linalg.matrices import BlockDiagonal, KroneckerProduct
from engine.tensor.matching import scalar_value, tensor_type_of
from engine.tensor.signs import is_positive


def _eye(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    n, m, k = inputs_of(variable)
    offset = scalar_value(k)
    if offset is None:
        return FactState.UNKNOWN
    *_, rows, columns = tensor_type_of(variable).shape
    if key in (LOWER_TRIANGULAR, UPPER_TRIANGULAR):
        # A triangle is taken to be square where no length is known.
        is_known = n is m or (rows is not None and columns is not None)
        return true_if(is_known and (offset <= 0 if key == LOWER_TRIANGULAR else offset >= 0))
    if offset != 0:
        return FactState.UNKNOWN
    if key == SELECTION and rows is not None and columns is not None:
        return true_if(rows >= columns)
    return true_if(n is m or has_square_matrices(variable))


def _alloc_diag(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    op, ndim = core_of(variable), tensor_type_of(variable).ndim
    axes = (op.axis1 % ndim, op.axis2 % ndim)
    if sorted(axes) != [ndim - 2, ndim - 1]:
        return FactState.UNKNOWN
    offset = op.offset if axes[0] < axes[1] else -op.offset
    if key in (LOWER_TRIANGULAR, UPPER_TRIANGULAR):
        return true_if(offset <= 0 if key == LOWER_TRIANGULAR else offset >= 0)
    return true_if(offset == 0 and (key != POSITIVE_DEFINITE or is_positive(inputs_of(variable)[0])))


def _alloc(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    value = inputs_of(variable)[0]
    if is_whole_matrix(value):
        return facts.get(value, key)
    if not (all(tensor_type_of(value).broadcastable) and has_square_matrices(variable)):
        return FactState.UNKNOWN
    if key == SYMMETRIC:
        return FactState.TRUE
    return true_if(key in (DIAGONAL, LOWER_TRIANGULAR, UPPER_TRIANGULAR) and scalar_value(value) == 0)


RULES: RuleTable = {
    **rules_for(MATRIX_KEYS, [Eye], _eye),
    **rules_for(
        (DIAGONAL, SYMMETRIC, LOWER_TRIANGULAR, UPPER_TRIANGULAR, POSITIVE_DEFINITE), [AllocDiag], _alloc_diag
    ),
    **rules_for(ALL_KEYS, [Alloc], _alloc),
    **rules_for(MATRIX_KEYS, [BlockDiagonal, KroneckerProduct], all_have_it),
}
