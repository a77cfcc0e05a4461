"""Properties of matrices, by PyTensor's names, what follows from each, and what can be known about them."""

from __future__ import annotations

from enum import IntFlag

from cachegraph.named_tuples import NamedTuple


class FactState(IntFlag):
    """The evidence about one property of one variable. CONFLICT is evidence for it and against it.

    It is neither true nor false by itself: bool() raises TypeError.
    """

    UNKNOWN = 0
    TRUE = 1
    FALSE = 2
    CONFLICT = 3

    def __bool__(self) -> bool:
        raise TypeError("FactState has no boolean value: compare it with FactState.TRUE, or use check()")

    @classmethod
    def join(cls, left: FactState, right: FactState) -> FactState:
        """Return both pieces of evidence about one property as one."""
        return cls(left | right)


class AssumptionKey(NamedTuple):
    """A property by its name, and by a shorter one for print-outs."""

    name: str
    short_name: str = ""

    def __repr__(self) -> str:
        return self.name


class ConflictingAssumptionsError(ValueError):
    """Raised where a property is known to hold and known not to hold."""


DIAGONAL = AssumptionKey("diagonal", "diag")
LOWER_TRIANGULAR = AssumptionKey("lower_triangular", "tril")
UPPER_TRIANGULAR = AssumptionKey("upper_triangular", "triu")
SYMMETRIC = AssumptionKey("symmetric", "sym")
POSITIVE_DEFINITE = AssumptionKey("positive_definite", "pd")
ORTHOGONAL = AssumptionKey("orthogonal", "orth")
SELECTION = AssumptionKey("selection", "sel")
PERMUTATION = AssumptionKey("permutation", "perm")
UNIQUE_INDICES = AssumptionKey("unique_indices", "uniq")

MATRIX_KEYS = (
    DIAGONAL,
    LOWER_TRIANGULAR,
    UPPER_TRIANGULAR,
    SYMMETRIC,
    POSITIVE_DEFINITE,
    ORTHOGONAL,
    SELECTION,
    PERMUTATION,
)
"""Properties of square matrices in the last two axes, and SELECTION: each column has a single 1."""
ALL_KEYS = (*MATRIX_KEYS, UNIQUE_INDICES)

IMPLIES: dict[AssumptionKey, tuple[AssumptionKey, ...]] = {
    DIAGONAL: (LOWER_TRIANGULAR, UPPER_TRIANGULAR, SYMMETRIC),
    POSITIVE_DEFINITE: (SYMMETRIC,),
    PERMUTATION: (SELECTION, ORTHOGONAL),
}
"""The weaker properties that each property implies."""
