"""Properties of inverses and of the factors of matrices."""

from __future__ import annotations

from engine.assumptions.core import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    MATRIX_KEYS,
    ORTHOGONAL,
    PERMUTATION,
    SELECTION,
    SYMMETRIC,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
)
from engine.assumptions.rules.rule import (
    Facts,
    RuleTable,
    core_of,
    first_has_it,
    inputs_of,
    rules_for,
    true_if,
)
from engine.graph.variables import Variable
from engine.tensor.linalg.control import SolveDiscreteLyapunov
from engine.tensor.linalg.eigen import Eigh
from engine.tensor.linalg.elimination import LU
from engine.tensor.linalg.equations import MatrixInverse
from engine.tensor.linalg.factorizations import Cholesky
from engine.tensor.linalg.orthogonal import QR
from engine.tensor.linalg.schur_forms import QZ, Schur
from engine.tensor.linalg.singular_values import SVD, MatrixPinv


def _place_from_end(variable: Variable) -> int:
    """Return 0 for the last output of its node, 1 for the one before."""
    assert variable.owner is not None
    return len(variable.owner.outputs) - 1 - variable.owner.outputs.index(variable)


def _cholesky(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    return true_if(core_of(variable).lower is (key == LOWER_TRIANGULAR))


def _lu(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    if key == UPPER_TRIANGULAR:
        return true_if(_place_from_end(variable) == 0)
    return true_if(variable.index == 1 and not core_of(variable).permute_l)


def _qr(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    mode = core_of(variable).mode
    if key == ORTHOGONAL:
        return true_if(mode == "full" and variable.index == 0)
    return true_if(mode in ("full", "economic") and variable.index == 1)


def _svd(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    op = core_of(variable)
    return true_if(op.compute_uv and op.full_matrices and variable.index != 1)


def _eigh(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    return true_if(variable.index == 1 and not core_of(variable).generalized)


def _vectors_last(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    """Return that the last outputs are orthogonal, one for each input."""
    return true_if(_place_from_end(variable) < len(inputs_of(variable)))


def _lyapunov(facts: Facts, key: AssumptionKey, variable: Variable) -> FactState:
    return true_if(facts.check(inputs_of(variable)[1], SYMMETRIC))


_OF_INVERSE = tuple(key for key in MATRIX_KEYS if key != SELECTION)

RULES: RuleTable = {
    **rules_for(_OF_INVERSE, [MatrixInverse], first_has_it),
    **rules_for((DIAGONAL, SYMMETRIC, ORTHOGONAL, PERMUTATION), [MatrixPinv], first_has_it),
    **rules_for((DIAGONAL,), [Cholesky], first_has_it),
    **rules_for((LOWER_TRIANGULAR, UPPER_TRIANGULAR), [Cholesky], _cholesky),
    **rules_for((LOWER_TRIANGULAR, UPPER_TRIANGULAR), [LU], _lu),
    **rules_for((UPPER_TRIANGULAR, ORTHOGONAL), [QR], _qr),
    **rules_for((ORTHOGONAL,), [SVD], _svd),
    **rules_for((ORTHOGONAL,), [Eigh], _eigh),
    **rules_for((ORTHOGONAL,), [Schur, QZ], _vectors_last),
    **rules_for((SYMMETRIC,), [SolveDiscreteLyapunov], _lyapunov),
}
