"""Powers with small whole exponents as products: these take a tenth of the time of a power.

It runs before loops are fused, when no rewrite looks for a power any more. The products round a few times,
up to 8 units in the last place for the largest exponent. 1 / x**n, for a negative one, is 0 where the result
is below the normal numbers; of these float32 has too few for that, so its powers stay.
"""

from __future__ import annotations

from typing import Any

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.inner.composite import Composite
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import GraphRewriter, RewriteReport, node_rewriter
from engine.scalar import ScalarOp, scalar_type
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.elemwise import cast, elemwise
from engine.tensor.matching import dtype_of, scalar_value

_MOST = 16
"""The largest exponent whose products round little."""


_POW = elemwise(scalar.pow)


@node_rewriter([_POW])
def local_pow_to_nested_squaring(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x ** 5 -> sqr(sqr(x)) * x in one loop; x ** -5 -> reciprocal(x ** 5), of float64."""
    base, exponent = node.inputs
    dtype, value = dtype_of(node.outputs[0]), scalar_value(exponent)
    is_positive = value in range(3, _MOST + 1)
    if dtype not in COMPILED_FLOATS or not (is_positive or (dtype == "float64" and _is_negative(value))):
        return None
    found = apply_scalar(_power(dtype, abs(int(value))), cast(base, dtype))
    return typed(node, found if is_positive else apply_scalar(scalar.reciprocal, found))


def _is_negative(value: Any) -> bool:
    return value in range(-_MOST, -1)


def _power(dtype: str, exponent: int) -> ScalarOp:
    """Return the Composite of the squares and products that are the power; for a single square, that."""
    if exponent == 2:
        return scalar.sqr
    x = scalar_type(dtype).make_variable()
    square: Any = x
    found: Any = None
    for place in range(exponent.bit_length()):
        square = scalar.sqr(square) if place else square
        if exponent >> place & 1:
            found = square if found is None else scalar.mul(found, square)
    return Composite([x], [found])


class WholePowers(GraphRewriter):
    """The powers of a graph as products."""

    name = local_pow_to_nested_squaring.name

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        if not any(node.op == _POW for node in fgraph.apply_nodes):
            return
        for node in fgraph.toposort():
            found = local_pow_to_nested_squaring.transform(fgraph, node)
            if isinstance(found, list):
                fgraph.replace_all([(node.outputs[0], found[0])], self.name)
                report.count(self.name)
