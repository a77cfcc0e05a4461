"""Products of sums of quotients as sums, for those who ask for this rewriter by its name.

Functions are not rewritten so: x * (a + b) written out rounds more, and cancels in other places. Where a
divisor cancels, it does where it is 0, infinite or NaN too, as everywhere in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine import scalar
from engine.gradient.written_forms import floats
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.canonical_products import Fraction
from engine.rewriting.elementwise_pattern import apply_scalar, folded
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.elemwise import elemwise
from engine.tensor.matching import DEEPEST, dtype_of, is_alike, tensor_type_of

_SUMS = (scalar.add, scalar.sub)


@node_rewriter([elemwise(scalar.mul), elemwise(scalar.true_div)])
def local_greedy_distributor(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """(a / x + b / y) * x * y -> a * y + b * x; (a / x + b) * x -> a + b * x; (a + b) * x stays."""
    output = node.outputs[0]
    if dtype_of(output) not in COMPILED_FLOATS:
        return None
    fraction = _fraction_of(output)
    if not fraction.has_plain_numbers():
        return None
    is_done = [_distribute(side) for side in fraction.factors]
    return typed(node, fraction.written()) if any(is_done) else None


def _fraction_of(v: Variable) -> Fraction:
    found = Fraction(dtype_of(v), tensor_type_of(v).ndim)
    found.multiply(v, is_above=True)
    return found


def _distribute(factors: list[Variable]) -> bool:
    """Multiply sums among `factors` by others that divide a term of theirs; return True if there are any."""
    is_done = False
    for total in list(factors):
        others = [v for v in factors if v is not total and _divides(v, total)]
        if not others:
            continue
        is_done = True
        spread = _multiplied(total, others)
        factors[:] = [spread if v is total else v for v in factors if not any(v is other for other in others)]
    return is_done


def _divides(divisor: Variable, total: Variable, steps: int = DEEPEST) -> bool:
    """Return True if a term of the sum `total` is divided by `divisor`."""
    terms = _terms(total)
    if terms is None or not steps:
        return False
    below = [_fraction_of(term).factors[1] for term in terms[1]]
    is_direct = any(is_alike(v, divisor) for factors in below for v in factors)
    return is_direct or any(_divides(divisor, term, steps - 1) for term in terms[1])


def _terms(total: Variable) -> tuple[Any, Sequence[Variable]] | None:
    """Return the Op and the operands of a sum or difference of floats; None of anything else."""
    found = [(op, floats(total, op)) for op in _SUMS]
    return next(((op, terms) for op, terms in found if terms is not None), None)


def _multiplied(total: Variable, factors: Sequence[Variable]) -> Any:
    """Return `total` times `factors`, each of its terms as a fraction in which they cancel."""
    terms = _terms(total)
    if terms is not None:
        return apply_scalar(terms[0], *[_multiplied(term, factors) for term in terms[1]])
    fraction = _fraction_of(total)
    if not fraction.has_plain_numbers():
        return folded(scalar.mul, [total, *factors])
    for factor in factors:
        fraction.multiply(factor, is_above=True)
    fraction.cancel()
    return fraction.written()
