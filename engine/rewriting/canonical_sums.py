"""Sums and differences as terms side by side, the form that PyTensor gives them, for those who ask by name.

A library that looks for terms finds them with their number in front. Functions are not rewritten so: what
is added in another order rounds in another place, and x + 0.0 is 0.0 where x is -0.0. Terms that cancel stay,
for they are NaN where they are infinite.
"""

from __future__ import annotations

import math
from typing import Any

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.canonical_products import in_shape_of, number_in
from engine.rewriting.elementwise_pattern import apply_scalar, folded
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.rewriting.walking import in2out
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.conversion import number
from engine.tensor.elemwise import elemwise
from engine.tensor.matching import DEEPEST, dtype_of, is_alike, operands_of, scalar_value, tensor_type_of


@node_rewriter([elemwise(scalar.add), elemwise(scalar.sub)])
def local_add_canonizer(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x + 1 - (y - 2) -> 3 + x - y; 0.0 + x + y -> x + y. Of floats of one dtype."""
    output = node.outputs[0]
    if dtype_of(output) not in COMPILED_FLOATS:
        return None
    total = _Total(dtype_of(output), tensor_type_of(output).ndim)
    total.add(output, is_positive=True)
    if not math.isfinite(total.number):
        return None
    found = total.written()
    return None if is_alike(found, output) else typed(node, found)


add_canonizer = in2out(local_add_canonizer, name="add_canonizer")
"""Writes all sums and differences of a graph as terms."""


class _Total:
    """A sum of a number and terms, less others."""

    def __init__(self, dtype: str, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        self.number = 0.0
        self.terms: list[list[Variable]] = [[], []]
        self.left_out: list[Variable] = []  # numbers that have a part in the shape

    def add(self, v: Variable, is_positive: bool, steps: int = DEEPEST) -> None:
        """Add or subtract `v`: what it is made of, if that is of the same dtype."""
        value, parts = number_in(v), _parts(v)
        if value is not None:
            self.number += value if is_positive else -value
            self.left_out += [v] if scalar_value(v) is None else []
        elif dtype_of(v) != self.dtype or not steps or not parts:
            self.terms[not is_positive].append(v)
        else:
            for part, is_added in parts:
                self.add(part, is_positive == is_added, steps - 1)

    def written(self) -> Any:
        """Return the sum as an expression, its number first if it is not 0, in the shape of all terms."""
        added, taken = self.terms
        if self.number or not (added or taken):
            added = [number(self.number, self.dtype, self.ndim), *added]
        if not added:
            added, taken = [apply_scalar(scalar.neg, taken[0])], taken[1:]
        found = folded(scalar.sub, [folded(scalar.add, added), *taken])
        return in_shape_of(found, self.left_out)


def _parts(v: Variable) -> list[tuple[Variable, bool]]:
    """Return what `v` is made of, each part with True if it is added; [] of no sum."""
    total, difference, negated = (operands_of(v, op) for op in (scalar.add, scalar.sub, scalar.neg))
    if negated is not None:
        return [(negated[0], False)]
    return list(zip(total or difference or (), (True, total is not None), strict=False))
