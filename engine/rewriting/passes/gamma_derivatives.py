"""Derivatives of the logarithm of the gamma function of the orders for which there are kernels."""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import ScalarOp
from engine.tensor.elemwise import cast, elemwise
from engine.tensor.matching import dtype_of, scalar_value

_POLYGAMMA = elemwise(scalar.polygamma)


@node_rewriter([_POLYGAMMA])
def local_polygamma_to_digamma(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """polygamma(0, x) -> psi(x)."""
    return _of_order(0, scalar.psi, node)


@node_rewriter([_POLYGAMMA])
def local_polygamma_to_tri_gamma(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """polygamma(1, x) -> tri_gamma(x)."""
    return _of_order(1, scalar.tri_gamma, node)


def _of_order(order: int, op: ScalarOp, node: Apply) -> list[Variable] | None:
    n, x = node.inputs
    if scalar_value(n) != order:
        return None
    return typed(node, apply_scalar(op, cast(x, dtype_of(node.outputs[0]))))
