"""Special functions that kernels call in SciPy: complements and inverses of the error function, incomplete
gamma and beta functions, Bessel functions, and others.

Their values are those of `scipy.special`. Derivatives without a closed form are series or continued
fractions (engine.inner.parameter_slopes); those of Bessel functions by their order are not defined, nor
are those of inverses of incomplete functions (NullGradientError).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.errors import NullGradientError
from engine.scalar.arithmetic import abs as absolute
from engine.scalar.arithmetic import add, mul, neg, sign, sqr, sub, true_div
from engine.scalar.comparison import ge, maximum, minimum, switch
from engine.scalar.exponential import exp, log, log1p
from engine.scalar.gamma import erf, gammaln, psi
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import floating

SPECIAL_FUNCTIONS = {
    **dict.fromkeys(("erfcx", "erfinv", "erfcinv", "ndtri_exp"), 1),
    **dict.fromkeys(("i0", "i0e", "i1", "i1e", "j0", "j1"), 1),
    **dict.fromkeys(("gammainc", "gammaincc", "gammaincinv", "gammainccinv"), 2),
    **dict.fromkeys(("ive", "kve", "jv", "owens_t", "beta", "poch"), 2),
    **dict.fromkeys(("betainc", "betaincinv"), 3),
    "hyp2f1": 4,
}
"""The names of the functions in `scipy.special`, with the number of their arguments."""


class SpecialFunction(ScalarOp):
    """The function `scipy.special.{name}` of real numbers, one of SPECIAL_FUNCTIONS."""

    __props__ = ("name",)
    rule = staticmethod(floating)

    def __init__(self, name: str) -> None:
        if name not in SPECIAL_FUNCTIONS:
            raise ValueError(f"Making a special function: {name!r} is none of {', '.join(SPECIAL_FUNCTIONS)}")
        self.name = name
        self.nin = SPECIAL_FUNCTIONS[name]

    def _impl(self, *arrays: Any) -> Any:
        import scipy.special

        wide = [np.asarray(array, "float64") for array in arrays]
        return np.asarray(getattr(scipy.special, self.name)(*wide)).astype(arrays[0].dtype)[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        slope = _SLOPES.get((self.name, index)) or _parameter_slope(self.name, index)
        if slope is None:
            message = f"Taking a gradient through {self.name}: it declares none for argument {index}"
            raise NullGradientError(message, self)
        return apply(mul, cotangent, slope(apply, output, *inputs))

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


erfcx = SpecialFunction("erfcx")
erfinv = SpecialFunction("erfinv")
erfcinv = SpecialFunction("erfcinv")
ndtri_exp = SpecialFunction("ndtri_exp")
i0 = SpecialFunction("i0")
i0e = SpecialFunction("i0e")
i1 = SpecialFunction("i1")
i1e = SpecialFunction("i1e")
j0 = SpecialFunction("j0")
j1 = SpecialFunction("j1")
gammainc = SpecialFunction("gammainc")
gammaincc = SpecialFunction("gammaincc")
gammaincinv = SpecialFunction("gammaincinv")
gammainccinv = SpecialFunction("gammainccinv")
ive = SpecialFunction("ive")
kve = SpecialFunction("kve")
jv = SpecialFunction("jv")
owens_t = SpecialFunction("owens_t")
betainc = SpecialFunction("betainc")
betaincinv = SpecialFunction("betaincinv")
hyp2f1 = SpecialFunction("hyp2f1")
beta = SpecialFunction("beta")
poch = SpecialFunction("poch")


# ---- derivatives: slope(apply, output, *inputs)


def _parameter_slope(name: str, index: int) -> Callable[..., Any] | None:
    """Return the derivative that is a loop, or None; imported when needed, for loops hold graphs."""
    from engine.inner.parameter_slopes import parameter_slope

    return parameter_slope(name, index)


_LOG_OF_ZERO = -1e30
"""In place of -inf. Every other logarithm is above -800, and multiples of this overflow in no dtype."""

_FAR_FOR_ERFCX = 10.0
"""From here on the terms of the slope of erfcx lose two digits and more; a dozen of its series suffice."""

_TERMS_OF_ERFCX = 11


def _of_erfcx(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    """Return 2 x erfcx(x) - 2 / sqrt(pi); for large x, where these cancel, the series that is left of it.

    The series is the asymptotic one of erfcx (Abramowitz and Stegun, "Handbook of Mathematical Functions",
    7.1.23) without its first term: -1 / (sqrt(pi) x**2) (1 - 3t + 15t**2 ...) for t = 1 / (2 x**2).
    """
    near = apply(
        sub, apply(mul, apply(mul, 2, apply(minimum, x, _FAR_FOR_ERFCX)), output), 2 / math.sqrt(math.pi)
    )
    t = apply(true_div, 0.5, apply(sqr, apply(maximum, x, _FAR_FOR_ERFCX)))
    series: Any = 1.0
    for number in range(_TERMS_OF_ERFCX, 0, -1):
        series = apply(sub, 1.0, apply(mul, apply(mul, 2 * number + 1, t), series))
    far = apply(mul, apply(mul, -2 / math.sqrt(math.pi), t), series)
    return apply(switch, apply(ge, x, _FAR_FOR_ERFCX), far, near)


def _of_erfinv(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    return apply(mul, math.sqrt(math.pi) / 2, apply(exp, apply(sqr, output)))


def _of_erfcinv(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    return apply(neg, _of_erfinv(apply, output, x))


def _of_ndtri_exp(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    exponent = apply(add, x, apply(mul, 0.5, apply(sqr, output)))
    return apply(mul, math.sqrt(2 * math.pi), apply(exp, exponent))


def _of_i0(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    return apply(i1, x)


def _of_i1(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    """Return the mean of the functions of the orders beside it; the scaled one of order 2 is unscaled."""
    second = apply(mul, apply(ive, 2, x), apply(exp, apply(absolute, x)))
    return apply(mul, 0.5, apply(add, apply(i0, x), second))


def _of_i0e(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    return apply(sub, apply(i1e, x), apply(mul, apply(sign, x), output))


def _of_i1e(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    """Return the slope by the Bessel functions of the orders beside it: none of them divides by x."""
    around = apply(mul, 0.5, apply(add, apply(i0e, x), apply(ive, 2, x)))
    return apply(sub, around, apply(mul, apply(sign, x), output))


def _of_j0(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    return apply(neg, apply(j1, x))


def _of_j1(apply: ApplyScalarOp, output: Any, x: Any) -> Any:
    return apply(mul, 0.5, apply(sub, apply(j0, x), apply(jv, 2, x)))


def _of_jv(apply: ApplyScalarOp, output: Any, v: Any, x: Any) -> Any:
    below, above = apply(jv, apply(sub, v, 1), x), apply(jv, apply(add, v, 1), x)
    return apply(mul, 0.5, apply(sub, below, above))


def _of_ive(apply: ApplyScalarOp, output: Any, v: Any, x: Any) -> Any:
    around = apply(add, apply(ive, apply(sub, v, 1), x), apply(ive, apply(add, v, 1), x))
    return apply(sub, apply(mul, 0.5, around), apply(mul, apply(sign, x), output))


def _of_kve(apply: ApplyScalarOp, output: Any, v: Any, x: Any) -> Any:
    around = apply(add, apply(kve, apply(sub, v, 1), x), apply(kve, apply(add, v, 1), x))
    return apply(sub, output, apply(mul, 0.5, around))


def _of_gammainc(apply: ApplyScalarOp, output: Any, k: Any, x: Any) -> Any:
    return apply(exp, _log_of_gamma_density(apply, k, x))


def _of_gammaincc(apply: ApplyScalarOp, output: Any, k: Any, x: Any) -> Any:
    return apply(neg, _of_gammainc(apply, output, k, x))


def _of_gammaincinv(apply: ApplyScalarOp, output: Any, k: Any, p: Any) -> Any:
    return apply(exp, apply(neg, _log_of_gamma_density(apply, k, output)))


def _of_gammainccinv(apply: ApplyScalarOp, output: Any, k: Any, p: Any) -> Any:
    return apply(neg, _of_gammaincinv(apply, output, k, p))


def _log_of_gamma_density(apply: ApplyScalarOp, k: Any, x: Any) -> Any:
    power = apply(sub, _multiple(apply, apply(sub, k, 1), apply(log, x)), x)
    return apply(sub, power, apply(gammaln, k))


def _of_betainc(apply: ApplyScalarOp, output: Any, a: Any, b: Any, x: Any) -> Any:
    return apply(exp, _log_of_beta_density(apply, a, b, x))


def _of_betaincinv(apply: ApplyScalarOp, output: Any, a: Any, b: Any, p: Any) -> Any:
    return apply(exp, apply(neg, _log_of_beta_density(apply, a, b, output)))


def _log_of_beta_density(apply: ApplyScalarOp, a: Any, b: Any, x: Any) -> Any:
    powers = apply(
        add,
        _multiple(apply, apply(sub, a, 1), apply(log, x)),
        _multiple(apply, apply(sub, b, 1), apply(log1p, apply(neg, x))),
    )
    total = apply(sub, apply(add, apply(gammaln, a), apply(gammaln, b)), apply(gammaln, apply(add, a, b)))
    return apply(sub, powers, total)


def _multiple(apply: ApplyScalarOp, factor: Any, logarithm: Any) -> Any:
    """Return `factor` times the `logarithm`, the logarithm of a power: 0 * log(0) is 0."""
    return apply(mul, factor, apply(maximum, logarithm, _LOG_OF_ZERO))


def _of_owens_t(apply: ApplyScalarOp, output: Any, h: Any, a: Any) -> Any:
    density = apply(exp, apply(mul, -0.5, apply(sqr, h)))
    area = apply(erf, apply(mul, apply(mul, a, h), 1 / math.sqrt(2)))
    return apply(mul, -1 / math.sqrt(8 * math.pi), apply(mul, density, area))


def _of_owens_t_angle(apply: ApplyScalarOp, output: Any, h: Any, a: Any) -> Any:
    wide = apply(add, 1, apply(sqr, a))
    density = apply(exp, apply(mul, -0.5, apply(mul, apply(sqr, h), wide)))
    return apply(true_div, density, apply(mul, 2 * math.pi, wide))


def _of_hyp2f1(apply: ApplyScalarOp, output: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    following = apply(hyp2f1, apply(add, a, 1), apply(add, b, 1), apply(add, c, 1), z)
    return apply(mul, apply(true_div, apply(mul, a, b), c), following)


def _of_beta(apply: ApplyScalarOp, output: Any, a: Any, b: Any) -> Any:
    return apply(mul, output, apply(sub, apply(psi, a), apply(psi, apply(add, a, b))))


def _of_beta_second(apply: ApplyScalarOp, output: Any, a: Any, b: Any) -> Any:
    return _of_beta(apply, output, b, a)


def _of_poch(apply: ApplyScalarOp, output: Any, z: Any, m: Any) -> Any:
    return apply(mul, output, apply(sub, apply(psi, apply(add, z, m)), apply(psi, z)))


def _of_poch_count(apply: ApplyScalarOp, output: Any, z: Any, m: Any) -> Any:
    return apply(mul, output, apply(psi, apply(add, z, m)))


_SLOPES: dict[tuple[str, int], Callable[..., Any]] = {
    ("erfcx", 0): _of_erfcx,
    ("erfinv", 0): _of_erfinv,
    ("erfcinv", 0): _of_erfcinv,
    ("ndtri_exp", 0): _of_ndtri_exp,
    ("i0", 0): _of_i0,
    ("i0e", 0): _of_i0e,
    ("i1", 0): _of_i1,
    ("i1e", 0): _of_i1e,
    ("j0", 0): _of_j0,
    ("j1", 0): _of_j1,
    ("jv", 1): _of_jv,
    ("ive", 1): _of_ive,
    ("kve", 1): _of_kve,
    ("gammainc", 1): _of_gammainc,
    ("gammaincc", 1): _of_gammaincc,
    ("gammaincinv", 1): _of_gammaincinv,
    ("gammainccinv", 1): _of_gammainccinv,
    ("betainc", 2): _of_betainc,
    ("betaincinv", 2): _of_betaincinv,
    ("owens_t", 0): _of_owens_t,
    ("owens_t", 1): _of_owens_t_angle,
    ("hyp2f1", 3): _of_hyp2f1,
    ("beta", 0): _of_beta,
    ("beta", 1): _of_beta_second,
    ("poch", 0): _of_poch,
    ("poch", 1): _of_poch_count,
}
"""The derivatives in closed form, by function and argument."""
