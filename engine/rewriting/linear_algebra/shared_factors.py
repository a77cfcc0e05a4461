"""One factorization of a matrix for several solutions with it, for those who ask for it by PyTensor's names.

An LU factorization is a callback, which costs more than it saves for small matrices (decision 0130): so these
rewrites have no tag but their names. Singular matrices have solutions of NaN, as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from engine.assumptions.rules.products import transposed
from engine.graph import Apply, FunctionGraph, Op, Variable
from engine.inner.diagonals import ExtractDiag
from engine.inner.scan import Scan
from engine.inner.tridiagonal import LUFactorTridiagonal, tridiagonal_lu_factor, tridiagonal_lu_solve
from engine.rewriting.linear_algebra.core_rewriter import as_like, core_of, core_rewriter, unbatched
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor.elemwise import DimShuffle
from engine.tensor.linalg.elimination import LUFactor, lu_factor, lu_solve
from engine.tensor.linalg.equations import Solve, cho_solve
from engine.tensor.linalg.factorizations import Cholesky, cholesky
from engine.tensor.matching import tensor_type_of


@core_rewriter(Solve)
def reuse_decomposition_multiple_solves(fgraph: FunctionGraph, node: Apply) -> Any:
    """solve(A, b), solve(A, c) -> solutions by the factors of A, computed once: LU, tridiagonal, Cholesky.

    So is one solution for a batch of right-hand sides with one A.
    """
    return _by_factors(node) if _has_factors(node) and _is_shared(fgraph, node) else None


@node_rewriter([Scan])
def scan_split_non_sequence_decomposition_and_solve(
    fgraph: FunctionGraph, node: Apply
) -> list[Variable] | None:
    """scan of solve(A, b) -> scan of the solution by the factors of A, if A is the same in all steps.

    The rewrites of loops then move the factorization in front of the loop.
    """
    op = cast(Scan, node.op)
    if not any(map(_has_factors, op.fgraph.nodes)) or any(inner.op.destroy_map for inner in op.fgraph.nodes):
        return None
    step = op.fgraph.unfreeze()
    found = _with_fixed_matrix(step, op.info.inner_inputs(step.inputs))
    if not found:
        return None
    for inner in found:
        new = as_like(_by_factors(inner), inner.outputs[0])
        step.replace_all([(inner.outputs[0], new)], "scan_split_non_sequence_decomposition_and_solve")
    return list(op.with_inner_graph(step.freeze()).make_node(*node.inputs).outputs)


def _with_fixed_matrix(step: FunctionGraph, inputs: Any) -> list[Apply]:
    """Return the nodes that solve equations whose matrix does not change between steps."""
    changing: set[Variable] = {*inputs.rows, *(row for taps in inputs.taps for row in taps)}
    found = []
    for node in step.toposort():
        if _has_factors(node) and node.inputs[0] not in changing:
            found.append(node)
        if not changing.isdisjoint(node.inputs):
            changing.update(node.outputs)
    return found


def _has_factors(node: Apply) -> bool:
    """Return True for equations with a matrix of floats that factors solve."""
    return isinstance(core_of(node), Solve) and tensor_type_of(node.inputs[0]).dtype in FLOATS


def _is_shared(fgraph: FunctionGraph, node: Apply) -> bool:
    """Return True if others need the factors, too: other nodes, or other places of the batch."""
    A, b = node.inputs
    batch = tensor_type_of(b).broadcastable[: tensor_type_of(b).ndim - core_of(node).b_ndim]
    ones = tensor_type_of(A).broadcastable[:-2]
    if any(is_one and not is_alone for is_one, is_alone in zip(ones, batch, strict=True)):
        return True
    factor, (matrix, _) = _factor_of(node), _source(A)
    return any(user is not node and _factor_of(user) == factor for user in _readers(fgraph, matrix))


def _factor_of(node: Apply) -> Op | None:
    """Return the Op of the factors of the matrix before transposition with which `node` can be computed."""
    op = core_of(node)
    if isinstance(op, LUFactor | LUFactorTridiagonal | Cholesky):
        return op
    if not isinstance(op, Solve):
        return None
    if op.assume_a != "pos":
        return LUFactor() if op.assume_a == "gen" else LUFactorTridiagonal()
    return Cholesky(lower=_reads_lower(op, _source(node.inputs[0])[1]))


def _reads_lower(op: Solve, is_turned: bool) -> bool:
    """Return True if `op` reads the lower triangle of the matrix that was or was not transposed for it."""
    return op.lower != is_turned


def _readers(fgraph: FunctionGraph, matrix: Variable) -> Iterator[Apply]:
    """Yield the nodes whose first input is `matrix`, as it is, transposed, with new axes, or a diagonal."""
    for node, place in fgraph.clients[matrix]:
        is_form = isinstance(node.op, DimShuffle) and _source(node.outputs[0])[0] is matrix
        if is_form or isinstance(core_of(node), ExtractDiag):
            yield from (reader for reader, place in fgraph.clients[node.outputs[0]] if place == 0)
        elif place == 0:
            yield node


def _source(A: Variable) -> tuple[Any, bool]:
    """Return the matrices without axes of length 1 in front, and True if A has them transposed."""
    plain = unbatched(A)
    before = transposed(plain)
    return (plain, False) if before is None else (before, True)


def _by_factors(node: Apply) -> Any:
    """Return what `node` solves, by the factors of its matrix."""
    op, (A, b) = core_of(node), node.inputs
    matrix, is_turned = _source(A)
    if op.assume_a == "gen":
        return lu_solve(lu_factor(matrix), b, trans=is_turned, b_ndim=op.b_ndim)
    if op.assume_a == "tridiagonal":
        factors = tridiagonal_lu_factor(matrix)
        return tridiagonal_lu_solve(factors, b, b_ndim=op.b_ndim, transposed=is_turned)
    lower = _reads_lower(op, is_turned)
    return cho_solve((cholesky(matrix, lower=lower), lower), b, b_ndim=op.b_ndim)
