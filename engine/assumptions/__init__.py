"""Known properties of matrices: that they are diagonal, triangular, symmetric, positive definite, orthogonal.

`assume` says it; the rules find it. Rewrites of linear algebra use it. Names and meaning are PyTensor's.
"""

from engine.assumptions.core import (
    ALL_KEYS,
    DIAGONAL,
    IMPLIES,
    LOWER_TRIANGULAR,
    MATRIX_KEYS,
    ORTHOGONAL,
    PERMUTATION,
    POSITIVE_DEFINITE,
    SELECTION,
    SYMMETRIC,
    UNIQUE_INDICES,
    UPPER_TRIANGULAR,
    AssumptionKey,
    ConflictingAssumptionsError,
    FactState,
)
from engine.assumptions.feature import AssumptionFeature, check_assumption
from engine.assumptions.specify import SpecifyAssumptions, assume
from engine.assumptions.summary import assumption_tags, summarize_assumptions

__all__ = [
    "ALL_KEYS",
    "DIAGONAL",
    "IMPLIES",
    "LOWER_TRIANGULAR",
    "MATRIX_KEYS",
    "ORTHOGONAL",
    "PERMUTATION",
    "POSITIVE_DEFINITE",
    "SELECTION",
    "SYMMETRIC",
    "UNIQUE_INDICES",
    "UPPER_TRIANGULAR",
    "AssumptionFeature",
    "AssumptionKey",
    "ConflictingAssumptionsError",
    "FactState",
    "SpecifyAssumptions",
    "assume",
    "assumption_tags",
    "check_assumption",
    "summarize_assumptions",
]
