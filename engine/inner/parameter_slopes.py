"""Derivatives of incomplete gamma and beta functions and of 2F1 by their parameters, as loops of numbers.

A series or a continued fraction is computed together with its derivative. Each loop returns NaN unless
it converges. Sources: Gautschi, "A computational procedure for incomplete gamma functions", 1979; Boik
and Robison-Cox, "Derivatives of the incomplete beta function", 1998; DLMF 8.9.2, 8.17.22 and 15.2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import inf, nan
from typing import Any

from engine.inner.composite import ScalarLoop
from engine.scalar import abs as absolute
from engine.scalar import (
    and_,
    eq,
    floor,
    ge,
    gt,
    invert,
    le,
    log,
    log1p,
    lt,
    maximum,
    or_,
    psi,
    scalar_type,
    where,
)
from engine.scalar.conversion import Cast
from engine.scalar.op import ApplyScalarOp, apply_scalar_op
from engine.scalar.special import betainc, gammainc, gammaincc

EPSILON, FRACTION_EPSILON = 1e-16, 1e-15
CANCELLED = 1e-13
FEWEST_TERMS = 10
"""A series whose first terms vanish has not converged yet."""
SMALLEST_SHAPE = 1e-30
"""For the first parameter of a gamma function: 1 - P, which is 0 at 0, has its digits here."""
GAMMA_STEPS, BETA_STEPS, HYPERGEOMETRIC_STEPS = 100_000, 20_000, 1_000_000
"""The most steps of each loop."""

Numbers = Sequence[Any]


def parameter_slope(name: str, index: int) -> Callable[..., Any] | None:
    """Return `slope(apply, output, *inputs)`, the derivative of the function `name` by argument `index`.

    Return None for a function or an argument that has none here.
    """
    return _SLOPES.get((name, index))


# ---- loops


def _numbers(count: int) -> list[Any]:
    return [scalar_type("float64").make_variable() for _ in range(count)]


def _loop(n_states: int, n_constants: int, steps: int, step: Callable[[Numbers, Numbers], Any]) -> ScalarLoop:
    """Return the loop over `step`, which gives new states and True when the first of them has converged.

    A state behind the others counts steps from 1 on; `step` finds it last among the states.
    """
    states, constants = _numbers(n_states + 1), _numbers(n_constants)
    (result, *others), is_done = step(states, constants)
    number = states[-1]
    gave_up = apply_scalar_op(ge, number, steps) & ~is_done
    checked = apply_scalar_op(where, gave_up, nan, result)
    return ScalarLoop(states, [checked, *others, number + 1], constants, is_done)


def _is_small(change: Any, value: Any, epsilon: float = EPSILON) -> Any:
    """Return True if `change` is less than rounding changes `value`."""
    return apply_scalar_op(le, apply_scalar_op(absolute, change), apply_scalar_op(absolute, value) * epsilon)


def _ratios(states: Numbers, terms: Sequence[tuple[Any, Any]]) -> tuple[list[Any], Any]:
    """Return the states of a continued fraction after `terms`, pairs (b, its derivative) and (a, its own).

    The states are the logarithmic derivative of the fraction A / B; A, its predecessor, their
    derivatives; B's predecessor and derivatives. B is divided out of all after each pass: it is 1. The
    second result is True when the logarithmic derivative has converged.
    """
    old, top, top1, slope, slope1, bottom1, bend, bend1 = states
    bottom: Any = 1.0
    for (b, db), (a, da) in terms:
        slope, slope1 = b * slope + db * top + a * slope1 + da * top1, slope
        bend, bend1 = b * bend + db * bottom + a * bend1 + da * bottom1, bend
        top, top1 = b * top + a * top1, top
        bottom, bottom1 = b * bottom + a * bottom1, bottom
    new = slope / top - bend / bottom
    kept = [each / bottom for each in (top, top1, slope, slope1, bottom1, bend, bend1)]
    return [new, *kept], _is_small(new - old, new, FRACTION_EPSILON)


def _gamma_series_step(states: Numbers, constants: Numbers) -> Any:
    """Add a term, x**n / gamma(k + n + 1) over the first one, and its derivative: it times `slope`."""
    _, total, change, term, slope, n = states
    k, x = constants
    total, change = total + term, change + term * slope
    found = [change / total, total, change, term * x / (k + n), slope - 1 / (k + n)]
    return found, _is_small(term * slope, change)


def _gamma_fraction_step(states: Numbers, constants: Numbers) -> Any:
    *fraction, n = states
    k, x = constants
    return _ratios(fraction, [((x + 2 * n + 1 - k, -1.0), (n * (k - n), n))])


def _beta_fraction_step(by_first: bool) -> Callable[[Numbers, Numbers], Any]:
    def step(states: Numbers, constants: Numbers) -> Any:
        *fraction, m = states
        a, b, x = constants
        even = m * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        if by_first:
            d_even = -even * (b - m) * (1 / (a + 2 * m - 1) + 1 / (a + 2 * m))
            d_odd = odd * (1 / (a + m) + 1 / (a + b + m) - 1 / (a + 2 * m) - 1 / (a + 2 * m + 1))
        else:
            d_even, d_odd = even, odd / (a + b + m)
        terms = [((1.0, 0.0), (even * (b - m), d_even)), ((1.0, 0.0), (odd, d_odd))]
        return _ratios(fraction, terms)

    return step


def _hypergeometric_step(index: int) -> Callable[[Numbers, Numbers], Any]:
    """Return the step that adds the derivative of a term of the series by parameter `index`.

    The sum is NaN if rounding the largest one leaves less than three digits of it.
    """

    def step(states: Numbers, constants: Numbers) -> Any:
        total, term, slope, largest, number = states
        a, b, c, z = constants
        n = number - 1
        rest = z / (c + n) / number
        factor = (a + n) * (b + n) * rest
        bend = ((b + n) * rest, (a + n) * rest, -factor / (c + n))[index]
        slope, term = factor * slope + bend * term, factor * term
        largest = apply_scalar_op(maximum, largest, apply_scalar_op(absolute, slope))
        total = total + slope
        is_over = _is_small(slope, total) & apply_scalar_op(gt, number, FEWEST_TERMS)
        is_lost = is_over & _is_small(total, largest, CANCELLED) & apply_scalar_op(gt, largest, 0.0)
        return (apply_scalar_op(where, is_lost, nan, total), term, slope, largest), is_over

    return step


@lru_cache(maxsize=8)
def _made(name: str, index: int) -> ScalarLoop:
    """Return the loop for argument `index` of the function `name`, or for a branch of it."""
    if name == "gamma series":
        return _loop(5, 2, GAMMA_STEPS, _gamma_series_step)
    if name == "gamma fraction":
        return _loop(8, 2, GAMMA_STEPS, _gamma_fraction_step)
    if name == "beta fraction":
        return _loop(8, 3, BETA_STEPS, _beta_fraction_step(index == 0))
    return _loop(4, 4, HYPERGEOMETRIC_STEPS, _hypergeometric_step(index))


# ---- slopes


def _in_doubles(slope: Callable[..., Any]) -> Callable[..., Any]:
    """Return `slope` without its second argument, with the others as float64s."""

    def computed(apply: ApplyScalarOp, _: Any, *inputs: Any) -> Any:
        return slope(apply, *[v if v.type.dtype == "float64" else apply(Cast("float64"), v) for v in inputs])

    return computed


def _times(apply: ApplyScalarOp, value: Any, factor: Any) -> Any:
    """Return the product; 0 where `value` is."""
    return apply(where, apply(eq, value, 0.0), 0.0, value * factor)


def _of_gammainc(apply: ApplyScalarOp, k: Any, x: Any) -> Any:
    """Return the slope of P(k, x) by k: by its series for x < k + 1, elsewhere by the fraction of 1 - P.

    It is NaN where P is, and at k = 0 that of the smallest k.
    """
    is_known = apply(and_, apply(ge, k, 0.0), apply(gt, k + x, 0.0))
    k = apply(maximum, k, SMALLEST_SHAPE)
    is_low = apply(lt, x, k + 1)
    steps = [apply(where, is_low, *pair) for pair in ((GAMMA_STEPS, 0), (0, GAMMA_STEPS))]
    log_x = apply(log, x)
    start = [nan, 0.0, 0.0, 1.0, log_x - apply(psi, k + 1), 1.0]
    series = apply(_made("gamma series", 0), steps[0], *start, k, x)
    share = 1 / (x + 1 - k)
    start = [nan, share, 0.0, 0.0, 0.0, share, -share, 0.0, 1.0]
    fraction = apply(_made("gamma fraction", 0), steps[1], *start, k, x)
    high = _times(apply, apply(gammaincc, k, x), log_x - apply(psi, k) + fraction)
    is_end = apply(or_, apply(eq, x, 0.0), apply(eq, x, inf))
    low = _times(apply, apply(gammainc, k, x), series)
    inside = apply(where, is_low, low, -high)
    return apply(where, is_known, apply(where, is_end, 0.0, inside), nan)


def _of_gammaincc(apply: ApplyScalarOp, k: Any, x: Any) -> Any:
    return -_of_gammainc(apply, k, x)


def _of_betainc(apply: ApplyScalarOp, a: Any, b: Any, x: Any, by_first: bool) -> Any:
    """Return the slope of I(a, b, x) by a or b; where x is large, that of 1 - I(b, a, 1 - x).

    It is NaN unless a and b are above 0.
    """
    is_known = apply(and_, apply(gt, a, 0.0), apply(gt, b, 0.0))
    is_low = apply(lt, x, (a + 1) / (a + b + 2))
    a, b, near = (apply(where, is_low, *pair) for pair in ((a, b), (b, a), (x, 1 - x)))
    logs = [apply(log, x), apply(log1p, -x)]
    log_x, log_rest = (apply(where, is_low, *pair) for pair in (logs, logs[::-1]))
    takes_first = is_low if by_first else apply(invert, is_low)
    first = _log_slope_of_betainc(apply, a, b, near, log_x, takes_first, 0)
    second = _log_slope_of_betainc(apply, a, b, near, log_rest, apply(invert, takes_first), 1)
    found = _times(apply, apply(betainc, a, b, near), apply(where, takes_first, first, second))
    is_end = apply(or_, apply(eq, x, 0.0), apply(eq, x, 1.0))
    inside = apply(where, is_low, found, -found)
    return apply(where, is_known, apply(where, is_end, 0.0, inside), nan)


def _log_slope_of_betainc(
    apply: ApplyScalarOp, a: Any, b: Any, x: Any, log_power: Any, is_needed: Any, index: int
) -> Any:
    """Return the slope of log(I(a, b, x)) by argument `index`; `log_power` is the logarithm of what has
    that argument as its exponent."""
    first = -(a + b) * x / (a + 1)
    slope = x * (b - 1) / ((a + 1) * (a + 1)) if index == 0 else -x / (a + 1)
    start = [nan, 1 + first, 1.0, slope, 0.0, 1.0, 0.0, 0.0, 1.0]
    steps = apply(where, is_needed, BETA_STEPS, 0)
    fraction = apply(_made("beta fraction", index), steps, *start, a, b, x)
    outside = log_power + apply(psi, a + b) - apply(psi, b if index else a)
    return (outside if index else outside - 1 / a) - fraction


def _of_hyp2f1(apply: ApplyScalarOp, a: Any, b: Any, c: Any, z: Any, index: int) -> Any:
    """Return the slope of 2F1(a, b; c; z) by a, b or c, where the series of the slope converges; else NaN.

    It ends if a or b is a whole number below 1, unless the slope is by that one.
    """
    is_inside = apply(lt, apply(absolute, z), 1.0)
    is_inside = apply(or_, is_inside, apply(and_, apply(eq, z, 1.0), apply(gt, c, a + b)))
    for place, parameter in enumerate((a, b)):
        if place != index:
            is_whole = apply(eq, apply(floor, parameter), parameter)
            is_inside = apply(or_, is_inside, apply(and_, is_whole, apply(le, parameter, 0.0)))
    steps = apply(where, is_inside, HYPERGEOMETRIC_STEPS, 0)
    found = apply(_made("hypergeometric", index), steps, 0.0, 1.0, 0.0, 0.0, 1.0, a, b, c, z)
    return apply(where, is_inside, found, nan)


_SLOPES: dict[tuple[str, int], Callable[..., Any]] = {
    ("gammainc", 0): _in_doubles(_of_gammainc),
    ("gammaincc", 0): _in_doubles(_of_gammaincc),
    ("betainc", 0): _in_doubles(partial(_of_betainc, by_first=True)),
    ("betainc", 1): _in_doubles(partial(_of_betainc, by_first=False)),
    **{("hyp2f1", index): _in_doubles(partial(_of_hyp2f1, index=index)) for index in range(3)},
}
"""The derivatives, by function and argument."""
