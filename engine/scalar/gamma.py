"""The error function, the gamma function, and their complements, logarithms and derivatives, as in SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.errors import NullGradientError
from engine.scalar.arithmetic import add, mul, neg, sqr
from engine.scalar.exponential import exp
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import INTEGERS, NoRule, Signature, floating, inexact

_ERF_SLOPE = 2 / math.sqrt(math.pi)


class Erf(ScalarOp):
    """The error function."""

    rule = staticmethod(inexact)

    def _impl(self, a: Any) -> Any:
        from scipy.special import erf

        return erf(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(mul, _ERF_SLOPE, apply(exp, apply(neg, apply(sqr, inputs[0])))))


class Erfc(ScalarOp):
    """1 minus the error function, exact where the latter is close to 1."""

    rule = staticmethod(inexact)

    def _impl(self, a: Any) -> Any:
        from scipy.special import erfc

        return erfc(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(
            neg, apply(mul, cotangent, apply(mul, _ERF_SLOPE, apply(exp, apply(neg, apply(sqr, inputs[0])))))
        )


class Gamma(ScalarOp):
    """The gamma function; NaN for negative whole numbers."""

    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        from scipy.special import gamma

        return gamma(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        # Near 0 both factors are large, and their product overflows where the cotangent is small.
        return apply(mul, apply(mul, cotangent, output), apply(psi, inputs[0]))


class GammaLn(ScalarOp):
    """The logarithm of the magnitude of the gamma function."""

    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        from scipy.special import gammaln

        # SciPy gives inf for subnormal numbers, whose reciprocals overflow.
        is_smallest = (a > 0) & (a < np.finfo(a.dtype).tiny)
        return np.where(is_smallest, -np.log(a), gammaln(a)).astype(a.dtype)[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(psi, inputs[0]))


class Psi(ScalarOp):
    """The derivative of the logarithm of the gamma function; NaN for negative whole numbers."""

    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        from scipy.special import psi

        return psi(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(tri_gamma, inputs[0]))


class TriGamma(ScalarOp):
    """The derivative of `psi`."""

    name = "tri_gamma"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        from scipy.special import polygamma

        return polygamma(1, a).astype(a.dtype)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        return apply(mul, cotangent, apply(polygamma, np.int64(2), inputs[0]))


def _of_an_order(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule of a whole number and a real one. Raises NoRule for other numbers."""
    order, argument = dtypes
    if order not in INTEGERS:
        raise NoRule(f"is of an integer, and not of {order}")
    dtype = floating((argument,))[1]
    return (order, dtype), dtype


class PolyGamma(ScalarOp):
    """Derivative number n + 1 of the logarithm of the gamma function, for a whole number n: NaN for a
    negative one. Its gradient by n is not defined (NullGradientError).
    """

    name = "polygamma"
    nin = 2
    has_kernel = False
    rule = staticmethod(_of_an_order)

    def _impl(self, n: Any, x: Any) -> Any:
        from scipy.special import polygamma

        wide = np.asarray(x, "float64")
        with np.errstate(all="ignore"):
            found = np.where(np.less(n, 0), np.nan, polygamma(np.maximum(n, 0), wide))
        return np.asarray(found).astype(np.asarray(x).dtype)[()]

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        n, x = inputs
        if index == 0:
            raise NullGradientError("Taking a gradient through polygamma: none is defined by n", self)
        return apply(mul, cotangent, apply(self, apply(add, n, 1), x))


erf = Erf()
erfc = Erfc()
gamma = Gamma()
gammaln = GammaLn()
psi = Psi()
tri_gamma = TriGamma()
polygamma = PolyGamma()
