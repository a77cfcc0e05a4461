"""The error function, the gamma function, and their complements, logarithms and derivatives, as in SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.errors import NullGradientError
from engine.scalar.arithmetic import mul, neg, sqr
from engine.scalar.exponential import exp
from engine.scalar.op import ApplyScalarOp, ScalarOp
from engine.scalar.promotion import floating, inexact

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
    """The derivative of `psi`. Its own gradient is not defined (NullGradientError)."""

    name = "tri_gamma"
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        from scipy.special import polygamma

        return polygamma(1, a).astype(a.dtype)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: ApplyScalarOp) -> Any:
        raise NullGradientError("Taking a gradient through tri_gamma: it declares none", self)


erf = Erf()
erfc = Erfc()
gamma = Gamma()
gammaln = GammaLn()
psi = Psi()
tri_gamma = TriGamma()
