"""Powers with a constant exponent.

`x ** 0.5` becomes `sqrt(x)`, as numpy's own operator has it: they differ for x = -inf (inf and NaN) and x = -0.0
(0.0 and -0.0).
"""

from __future__ import annotations

from engine import scalar
from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Variable
from engine.rewriting.passes.arithmetic import as_output
from engine.rewriting.pattern import apply_scalar
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor.elemwise import cast, elemwise
from engine.tensor.matching import dtype_of, scalar_value

OF_FLOATS = {0.5: scalar.sqrt, -1: scalar.reciprocal}


@node_rewriter([elemwise(scalar.pow)])
def local_pow_constant(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x ** 0 -> 1; x ** 1 -> x; x ** 2 -> sqr(x); of floats x ** 0.5 -> sqrt(x), x ** -1 -> reciprocal(x)."""
    base, exponent = node.inputs
    dtype = dtype_of(node.outputs[0])
    value = scalar_value(exponent)
    if value is None:
        return None
    base = cast(base, dtype)
    if value == 0:
        return as_output(apply_scalar(scalar.second, base, cast(1, dtype)), node)
    if value == 1:
        return as_output(base, node)
    if value == 2:
        return as_output(apply_scalar(scalar.sqr, base), node)
    if dtype in FLOATS and value in OF_FLOATS:
        return as_output(apply_scalar(OF_FLOATS[value], base), node)
    return None
