"""Products and quotients as one fraction, the form that PyTensor gives them, for those who ask by its name.

A library that looks for factors finds them side by side, with their number in front. Functions are not
rewritten so: what is multiplied in another order rounds, and may overflow, in another place. Where
x * y / y becomes x, it does where y is 0, infinite or NaN too, as everywhere in the engine. A product with 0
is 0 where another factor is infinite or NaN, or a divisor is 0, too: in functions it is NaN there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar, folded
from engine.rewriting.passes.repeated_values import repeated_in
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.rewriting.walking import in2out
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.conversion import number
from engine.tensor.elemwise import elemwise
from engine.tensor.matching import DEEPEST, dtype_of, is_alike, operands_of, scalar_value, tensor_type_of

_LARGEST = 1e30
"""Numbers up to here, and down to its inverse, are multiplied: no float dtype of a kernel overflows."""


@node_rewriter([elemwise(scalar.mul), elemwise(scalar.true_div)])
def local_mul_canonizer(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x / y * 2 / z -> (2 * x) / (y * z); x * y / y -> x; 3 * x * 2 -> 6 * x; 0 * x -> 0.

    Of floats of one dtype.
    """
    output = node.outputs[0]
    if dtype_of(output) not in COMPILED_FLOATS:
        return None
    fraction = Fraction(dtype_of(output), tensor_type_of(output).ndim)
    fraction.multiply(output, is_above=True)
    fraction.cancel()
    fraction.absorb()
    if not (fraction.is_zero() or fraction.has_plain_numbers()):
        return None
    found = fraction.written()
    return None if is_alike(found, output) else typed(node, found)


mul_canonizer = in2out(local_mul_canonizer, name="mul_canonizer")
"""Writes all products and quotients of a graph as fractions."""


class Fraction:
    """A quotient of two products of a number and factors: of each, the one above the line comes first."""

    def __init__(self, dtype: str, ndim: int) -> None:
        self.dtype = dtype
        self.ndim = ndim
        self.numbers = [1.0, 1.0]
        self.has_zero = False  # a number that underflows is 0, too
        self.factors: list[list[Variable]] = [[], []]
        self.left_out: list[Variable] = []  # what is no factor any more, and has a part in the shape

    def multiply(self, v: Variable, is_above: bool, steps: int = DEEPEST) -> None:
        """Multiply or divide by `v`: by what it is made of, if that is of the same dtype."""
        filled = operands_of(v, scalar.second)
        if filled is not None and number_in(filled[1]) is not None:
            self.left_out.append(filled[0])
            v = filled[1]
        value, parts = number_in(v), _parts(v)
        if value is not None:
            self.numbers[not is_above] *= value
            self.has_zero = self.has_zero or (is_above and value == 0)
            self.left_out += [v] if scalar_value(v) is None else []
        elif dtype_of(v) != self.dtype or not steps or not parts:
            self.factors[not is_above].append(v)
        else:
            for part, is_factor in parts:
                self.multiply(part, is_above == is_factor, steps - 1)

    def cancel(self) -> None:
        """Leave out each factor that is above and below the line."""
        for factor in list(self.factors[0]):
            same = next((v for v in self.factors[1] if is_alike(v, factor)), None)
            if same is not None:
                self.left_out.append(factor)
                for side, gone in zip(self.factors, (factor, same), strict=True):
                    side.pop(next(place for place, v in enumerate(side) if v is gone))

    def is_zero(self) -> bool:
        """Return True if 0 is multiplied by finite numbers, and divided by one far from 0 and overflow."""
        return self.has_zero and self.numbers[0] == 0 and 1 / _LARGEST <= abs(self.numbers[1]) <= _LARGEST

    def absorb(self) -> None:
        """Leave out all factors if the fraction is zero."""
        if self.is_zero():
            self.left_out += [v for side in self.factors for v in side]
            self.numbers, self.factors = [self.numbers[0] / self.numbers[1], 1.0], [[], []]

    def has_plain_numbers(self) -> bool:
        """Return True if its numbers are finite, not 0, and far from overflow."""
        return all(1 / _LARGEST <= abs(value) <= _LARGEST for value in self.numbers)

    def written(self) -> Any:
        """Return the fraction as an expression, in the shape of all that was multiplied."""
        above, below = self.numbers
        if abs(math.frexp(below)[0]) == 0.5:  # a power of two, whose inverse is exact
            above, below = above / below, 1.0
        found, divisor = self._product(above, self.factors[0]), self._product(below, self.factors[1])
        if below != 1 or self.factors[1]:
            found = apply_scalar(scalar.true_div, found, divisor)
        return in_shape_of(found, self.left_out)

    def _product(self, value: float, factors: list[Variable]) -> Any:
        """Return the product, with its number first: the number 1 only if it is alone."""
        front = [] if value == 1 and factors else [number(value, self.dtype, self.ndim)]
        return folded(scalar.mul, [*front, *factors])


def in_shape_of(found: Any, left_out: Iterable[Variable]) -> Any:
    """Return `found` in the shape that it has together with what was `left_out` of it."""
    for v in left_out:
        lengths = zip(tensor_type_of(v).shape, tensor_type_of(found).shape, strict=True)
        if any(length not in (1, known) for length, known in lengths):
            found = apply_scalar(scalar.second, v, found)
    return found


def _parts(v: Variable) -> list[tuple[Variable, bool]]:
    """Return what `v` is made of, each part with True for a factor, False for a divisor; [] of no product."""
    product, quotient = operands_of(v, scalar.mul), operands_of(v, scalar.true_div)
    negated = operands_of(v, scalar.neg)
    if negated is not None:
        ndim = tensor_type_of(v).ndim
        return [(number(-1.0, dtype_of(v), ndim), True), (negated[0], True)]
    return list(zip(product or quotient or (), (True, product is not None), strict=False))


def number_in(v: Variable) -> float | None:
    """Return the real number that all elements of a constant are, or None."""
    repeated = repeated_in(v) if isinstance(v, Constant) and scalar_value(v) is None else None
    value = scalar_value(v if repeated is None else repeated[0])
    return None if value is None or isinstance(value, complex) else float(value)
