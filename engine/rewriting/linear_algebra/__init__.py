"""Rewrites of linear algebra, by the structure of matrices that is known (engine/assumptions).

They run on the graph as it was written, merged: named Ops are still there. The names are PyTensor's.
"""

from __future__ import annotations

from engine.rewriting.inner_graphs import inline_optimized_einsum
from engine.rewriting.linear_algebra.database import LinearAlgebraDB
from engine.rewriting.linear_algebra.decompositions import DECOMPOSITIONS
from engine.rewriting.linear_algebra.determinants import DETERMINANTS
from engine.rewriting.linear_algebra.diagonals import DIAGONALS, extract_diag_lift_pass
from engine.rewriting.linear_algebra.inverses import INVERSES
from engine.rewriting.linear_algebra.products import PRODUCTS
from engine.rewriting.linear_algebra.selections import SELECTIONS
from engine.rewriting.linear_algebra.shared_factors import reuse_decomposition_multiple_solves
from engine.rewriting.linear_algebra.solvers import SOLVERS, SOLVERS_OF_BATCHES
from engine.rewriting.passes.axes import local_dimshuffle_lift
from engine.rewriting.rewriters import NodeRewriter

__all__ = ["linear_algebra_database"]

_NAME = "linear_algebra"
_TAGS = (_NAME, "fast_run", "fast_compile", "canonicalize", "stabilize")

REWRITERS: dict[NodeRewriter, tuple[str, ...]] = {
    local_dimshuffle_lift: _TAGS,
    **dict.fromkeys(DIAGONALS, (*_TAGS, extract_diag_lift_pass.name)),
    **dict.fromkeys((*PRODUCTS, *SELECTIONS, *INVERSES, *SOLVERS), _TAGS),
    reuse_decomposition_multiple_solves: (),
    **dict.fromkeys((*SOLVERS_OF_BATCHES, *DECOMPOSITIONS, *DETERMINANTS), _TAGS),
}
"""Tried in this order on each node, until none applies, and their tags. A mode has the one without tags if it
names it.
"""


def linear_algebra_database() -> LinearAlgebraDB:
    """Return the database of these rewrites."""
    database = LinearAlgebraDB(_NAME)
    for rewriter, tags in REWRITERS.items():
        database.register(rewriter.name, rewriter, *tags, use_db_name_as_tag=False)
    # A diagonal of an einsum is one of its last product. In a graph without matrices it stays to be seen.
    database.register(
        inline_optimized_einsum.name, inline_optimized_einsum, "fast_run", "fast_compile", "specialize"
    )
    return database
