"""Products of powers as one power of each base, the form that PyTensor gives them, for those who ask by name.

`including("local_mul_exp_to_exp_add")` merges the exponentials of a product that have other factors
between them, and `local_mul_pow_to_pow_add` the powers of one base. Functions are not rewritten so: what is
multiplied in another order rounds in another place, and a**x * a**-x becomes 1, where a is 0 or negative too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import scalar
from engine.gradient.stable_products import are_of_one_shape
from engine.gradient.written_forms import exponent_of, floats, negated
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.canonical_products import Fraction
from engine.rewriting.elementwise_pattern import apply_scalar, folded
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.elemwise import elemwise
from engine.tensor.matching import dtype_of, is_alike, tensor_type_of

_PRODUCTS = (elemwise(scalar.mul), elemwise(scalar.true_div))


@node_rewriter(_PRODUCTS)
def local_mul_exp_to_exp_add(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """exp(x) * y * exp(z) / exp(w) -> exp(x + z - w) * y; exp(x) * exp(-x) -> 1."""
    return _merged(node, _exponential)


@node_rewriter(_PRODUCTS)
def local_mul_pow_to_pow_add(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """a**x * b**w * a**y / a**z -> a**(x + y - z) * b**w."""
    return _merged(node, _power)


_Power = tuple[Any, Any]
"""The base of a power, None for an exponential, and its exponent."""


def _exponential(v: Variable) -> _Power | None:
    x = exponent_of(v)
    return None if x is None else (None, x)


def _power(v: Variable) -> _Power | None:
    operands = floats(v, scalar.pow)
    return None if operands is None else (operands[0], operands[1])


def _merged(node: Apply, read: Callable[[Variable], _Power | None]) -> list[Variable] | None:
    """Return the product or quotient `node` with one power for those of one base and shape that `read` finds
    in it; None if there are no two.
    """
    output = node.outputs[0]
    if dtype_of(output) not in COMPILED_FLOATS:
        return None
    fraction = Fraction(dtype_of(output), tensor_type_of(output).ndim)
    fraction.multiply(output, is_above=True)
    groups = _grouped(fraction, read)
    if not fraction.has_plain_numbers() or all(len(group.powers) < 2 for group in groups):
        return None
    for group in groups:
        group.merge_in(fraction)
    return typed(node, fraction.written())


class _PowersOfBase:
    """Powers of one base and shape in a fraction: the exponents of those above the line, and below it."""

    def __init__(self, base: Any, exponent: Any) -> None:
        self.base, self.example = base, exponent
        self.powers: list[Variable] = []
        self.exponents: list[list[Any]] = [[], []]

    def takes(self, base: Any, exponent: Any) -> bool:
        """Return True if a power of `base` is one of this group."""
        if (base is None) != (self.base is None) or not (base is None or is_alike(base, self.base)):
            return False
        return are_of_one_shape(exponent, self.example)

    def add(self, power: Variable, exponent: Any, side: int) -> None:
        """Add a power that is above the line (`side` 0) or below it; one of -x is that of x on the other
        side. It cancels one of the same exponent that is there.
        """
        self.powers.append(power)
        opposite = negated(exponent)
        if opposite is not None:
            exponent, side = opposite, 1 - side
        others = self.exponents[1 - side]
        same = next((place for place, other in enumerate(others) if is_alike(other, exponent)), None)
        if same is None:
            self.exponents[side].append(exponent)
        else:
            others.pop(same)

    def merge_in(self, fraction: Fraction) -> None:
        """Replace the powers in `fraction` by one, if they are several; by none if they cancel."""
        if len(self.powers) < 2:
            return
        for side, factors in enumerate(fraction.factors):
            fraction.factors[side] = [v for v in factors if not any(v is power for power in self.powers)]
        above, below = self.exponents
        fraction.left_out += self.powers
        if above or below:
            fraction.factors[0].append(self._power_of(_difference(above, below)))

    def _power_of(self, exponent: Any) -> Any:
        if self.base is None:
            return apply_scalar(scalar.exp, exponent)
        return apply_scalar(scalar.pow, self.base, exponent)


def _grouped(fraction: Fraction, read: Callable[[Variable], _Power | None]) -> list[_PowersOfBase]:
    groups: list[_PowersOfBase] = []
    for side, factors in enumerate(fraction.factors):
        for factor in factors:
            found = read(factor)
            if found is None:
                continue
            group = next((group for group in groups if group.takes(*found)), None)
            if group is None:
                group = _PowersOfBase(*found)
                groups.append(group)
            group.add(factor, found[1], side)
    return groups


def _difference(above: list[Any], below: list[Any]) -> Any:
    """Return the sum of the exponents `above`, less those `below`."""
    if not above:
        return apply_scalar(scalar.neg, folded(scalar.add, below))
    return folded(scalar.sub, [folded(scalar.add, above), *below])
