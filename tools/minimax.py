"""Minimax polynomials of engine/codegen/llvm/elementary/coefficients.py: prints the tables, fitted anew.

Run `python tools/minimax.py [NAME...]`. Each fit is Remez's exchange algorithm in 60 digits with mpmath:
the polynomial p of the given degree with the least max |weight (f - p)| over the interval. The coefficients
are then rounded to float64, lowest degree first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
from mpmath import mpf

Function = Callable[[Any], Any]
_GRID = 1200


@dataclass(frozen=True)
class Fit:
    """A function to approximate from `low` to `high` by `degree`, and the weight of the error."""

    function: Function
    low: Any
    high: Any
    degree: int
    weight: Function = lambda x: mpf(1)


def remez(fit: Fit) -> tuple[list[Any], Any]:
    """Return the coefficients, lowest first, and the greatest weighted error."""
    low, high = mpf(fit.low), mpf(fit.high)
    middle, half = (low + high) / 2, (high - low) / 2
    grid = [middle - half * mpmath.cos(mpmath.pi * n / _GRID) for n in range(_GRID + 1)]
    values, weights = [fit.function(x) for x in grid], [fit.weight(x) for x in grid]
    count = fit.degree + 2
    chosen = [round(n * _GRID / (count - 1)) for n in range(count)]
    for _ in range(30):
        scaled = _solve(fit.degree, [(grid[n] - middle) / half for n in chosen], chosen, values, weights)
        errors = [
            weight * (value - mpmath.polyval(scaled[::-1], (x - middle) / half))
            for x, value, weight in zip(grid, values, weights, strict=True)
        ]
        greatest = max(map(abs, errors))
        following = _extrema(errors, count)
        if following == chosen:
            break
        chosen = following
    return _in_powers_of_x(scaled, middle, half), greatest


def _solve(degree: int, points: list[Any], chosen: list[int], values: list[Any], weights: list[Any]) -> Any:
    rows = [
        [point**power for power in range(degree + 1)] + [(-1) ** n / weights[at]]
        for n, (point, at) in enumerate(zip(points, chosen, strict=True))
    ]
    solved = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([values[at] for at in chosen]))
    return list(solved)[:-1]


def _extrema(errors: list[Any], count: int) -> list[int]:
    """Return the positions of the greatest errors of alternating sign."""
    found: list[int] = []
    for n, error in enumerate(errors):
        if found and (error > 0) == (errors[found[-1]] > 0):
            if abs(error) > abs(errors[found[-1]]):
                found[-1] = n
        else:
            found.append(n)
    while len(found) > count:
        del found[0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1]
    return found


def _in_powers_of_x(scaled: list[Any], middle: Any, half: Any) -> list[Any]:
    result = [mpf(0)] * len(scaled)
    for coefficient in reversed(scaled):  # Horner's rule, with polynomials
        moved = [mpf(0), *[value / half for value in result[:-1]]]
        result = [up - value * middle / half for up, value in zip(moved, result, strict=True)]
        result[0] += coefficient
    return result


def _relative_to(function: Function) -> Function:
    return lambda x: 1 / function(x)


def _exp(r: Any) -> Any:
    return mpf(1) / 2 if abs(r) < 1e-25 else (mpmath.expm1(r) - r) / r**2


def _log(z: Any) -> Any:
    s = mpmath.sqrt(max(z, mpf(10) ** -25))
    return (mpmath.log((1 + s) / (1 - s)) - 2 * s) / s**3


def _exp2(r: Any) -> Any:
    return mpmath.log(2) if abs(r) < 1e-25 else mpmath.expm1(r * mpmath.log(2)) / r


def _log_of_sum(f: Any) -> Any:
    return -mpf(1) / 2 if abs(f) < 1e-20 else (mpmath.log1p(f) - f) / f**2


def _log_tail(z: Any) -> Any:
    z = max(z, mpf(10) ** -18)
    return (_log(z) - mpf(2) / 3) / z


def _sin(z: Any) -> Any:
    r = mpmath.sqrt(max(z, mpf(10) ** -25))
    return (mpmath.sin(r) - r) / r**3


def _cos(z: Any) -> Any:
    z = max(z, mpf(10) ** -12)
    return (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2


def _arctan(z: Any) -> Any:
    r = mpmath.sqrt(max(z, mpf(10) ** -25))
    return (mpmath.atan(r) - r) / r**3


def _erf(z: Any) -> Any:
    x = mpmath.sqrt(max(z, mpf(10) ** -25))
    return mpmath.erf(x) / x


def _erfc(t: Any) -> Any:
    x = 1 / t - 2
    return mpmath.exp(x * x) * mpmath.erfc(x) / t


def fits() -> dict[str, Fit]:
    """Return all fits: the number in a name is that of the digits of the format, 64 or 32 bits."""
    half_ln2 = mpmath.log(2) / 2 * mpf("1.0001")
    log_end = ((mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)) ** 2 * mpf("1.001")
    quarter_end = (mpmath.pi / 4 * mpf("1.0001")) ** 2
    eighth_end = (mpmath.tan(mpmath.pi / 8) * mpf("1.001")) ** 2
    found = {}
    for bits, exp, log, sin, cos, arctan, erf in ((64, 9, 6, 5, 5, 10, 11), (32, 4, 2, 3, 2, 4, 6)):
        found[f"exp{bits}"] = Fit(_exp, -half_ln2, half_ln2, exp, lambda r: abs(r) + mpf(10) ** -6)
        found[f"log{bits}"] = Fit(_log, 0, log_end, log, lambda z: z + mpf(10) ** -6)
        found[f"sin{bits}"] = Fit(_sin, 0, quarter_end, sin, lambda z: z + mpf(10) ** -4)
        found[f"cos{bits}"] = Fit(_cos, 0, quarter_end, cos, lambda z: z * z + mpf(10) ** -4)
        found[f"arctan{bits}"] = Fit(_arctan, 0, eighth_end, arctan, lambda z: z + mpf(10) ** -4)
        found[f"erf{bits}"] = Fit(_erf, 0, 1, erf, _relative_to(_erf))
    float_end = (mpmath.pi / 4 * mpf("1.02")) ** 2  # k is rounded in float32
    found["sin32"] = Fit(_sin, 0, float_end, 3, lambda z: z + mpf(10) ** -4)
    found["cos32"] = Fit(_cos, 0, float_end, 2, lambda z: z * z + mpf(10) ** -4)
    found["erfc64"] = Fit(_erfc, mpf(1) / 30, mpf(2) / 5, 22, _relative_to(_erfc))
    found["erfc32"] = Fit(_erfc, 1 / mpf("12.1"), mpf(2) / 5, 9, _relative_to(_erfc))
    middle, one_from = mpf("2.4609375"), mpf("3.921875")
    found["erfc_above_one"] = Fit(lambda t: mpmath.erfc(t + middle), 1 - middle, one_from - middle, 12)
    found["log_of_sum"] = Fit(_log_of_sum, mpmath.sqrt(mpf(1) / 2) - 1, mpmath.sqrt(2) - 1, 8, abs)
    for bits, degree in ((64, 10), (32, 5)):
        found[f"exp2{bits}"] = Fit(
            _exp2, -mpf("0.5001"), mpf("0.5001"), degree, lambda r: abs(r) + mpf(10) ** -6
        )
    found["log_tail64"] = Fit(_log_tail, 0, log_end, 7)
    found["log_tail32"] = Fit(_log, 0, log_end, 3)
    return found


def main(names: list[str]) -> None:
    """Print the fits of these names, or all: the error, then the coefficients."""
    mpmath.mp.dps = 60
    table = fits()
    for name in names or table:
        coefficients, error = remez(table[name])
        print(name, f"2**{float(mpmath.log(error, 2)):.1f}", *[float(value).hex() for value in coefficients])


if __name__ == "__main__":
    main(sys.argv[1:])
