"""Draws of floats from numpy's distributions: each is the method of numpy's Generator of the same name."""

from __future__ import annotations

import warnings
from typing import Any

from engine.random.elementwise import ElementwiseRandomVariable
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.math import mul, sqrt, true_div
from engine.tensor.shape import shape


class _OneParameter(ElementwiseRandomVariable):
    """A draw of floats with one parameter."""

    signature = "()->()"
    dtype = "floatX"


class _TwoParameters(ElementwiseRandomVariable):
    """A draw of floats with two parameters."""

    signature = "(),()->()"
    dtype = "floatX"


class UniformRV(_TwoParameters):
    """Numbers from `low` to before `high`, all equally likely."""

    name = "uniform"

    def __call__(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((low, high), size, **kwargs)


class TriangularRV(ElementwiseRandomVariable):
    """Numbers from `left` to `right`, most of them near `mode`."""

    name = "triangular"
    signature = "(),(),()->()"
    dtype = "floatX"

    def __call__(self, left: Any, mode: Any, right: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((left, mode, right), size, **kwargs)


class BetaRV(_TwoParameters):
    """Numbers of the beta distribution, between 0 and 1."""

    name = "beta"

    def __call__(self, alpha: Any, beta: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((alpha, beta), size, **kwargs)


class NormalRV(_TwoParameters):
    """Normal numbers of mean `loc` and standard deviation `scale`."""

    name = "normal"

    def __call__(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((loc, scale), size, **kwargs)


class LogNormalRV(_TwoParameters):
    """Numbers whose logarithms are normal, of mean `mean` and standard deviation `sigma`."""

    name = "lognormal"

    def __call__(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((mean, sigma), size, **kwargs)


class GammaRV(_TwoParameters):
    """Numbers of the gamma distribution of mean `shape * scale`."""

    name = "gamma"

    def __call__(self, shape: Any, scale: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((shape, scale), size, **kwargs)


class InvGammaRV(_TwoParameters):
    """Inverses of numbers of the gamma distribution of `shape` and the inverse of `scale`."""

    name = "invgamma"

    def __call__(self, shape: Any, scale: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((shape, scale), size, **kwargs)

    def rng_fn(self, rng: Any, shape: Any, scale: Any, size: Any) -> Any:
        return 1 / rng.gamma(shape, 1 / scale, size)


class ExponentialRV(_OneParameter):
    """Numbers of the exponential distribution of mean `scale`."""

    name = "exponential"

    def __call__(self, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((scale,), size, **kwargs)


class WeibullRV(_OneParameter):
    """Numbers of the Weibull distribution of scale 1."""

    name = "weibull"

    def __call__(self, shape: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((shape,), size, **kwargs)


class LogisticRV(_TwoParameters):
    """Numbers of the logistic distribution of mean `loc`."""

    name = "logistic"

    def __call__(self, loc: Any = 0, scale: Any = 1, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((loc, scale), size, **kwargs)


class VonMisesRV(_TwoParameters):
    """Angles from -pi to pi, most of them near `mu`."""

    name = "vonmises"

    def __call__(self, mu: Any, kappa: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((mu, kappa), size, **kwargs)


class WaldRV(_TwoParameters):
    """Numbers of the inverse Gaussian distribution of mean `mean`."""

    name = "wald"

    def __call__(self, mean: Any = 1.0, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((mean, scale), size, **kwargs)


class LaplaceRV(_TwoParameters):
    """Numbers of the Laplace distribution of mean `loc`."""

    name = "laplace"

    def __call__(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((loc, scale), size, **kwargs)


uniform = UniformRV()
triangular = TriangularRV()
beta = BetaRV()
normal = NormalRV()
lognormal = LogNormalRV()
_gamma = GammaRV()
invgamma = InvGammaRV()
exponential = ExponentialRV()
weibull = WeibullRV()
logistic = LogisticRV()
vonmises = VonMisesRV()
wald = WaldRV()
laplace = LaplaceRV()


def standard_normal(
    *, size: Any = None, rng: Any = None, dtype: Any = None, return_next_rng: bool = False
) -> Any:
    """Return normal numbers of mean 0 and standard deviation 1."""
    return normal(0.0, 1.0, size=size, rng=rng, dtype=dtype, return_next_rng=return_next_rng)


def gamma(shape: Any, rate: Any = None, scale: Any = None, **kwargs: Any) -> Any:
    """Return numbers of the gamma distribution of mean `shape * scale`; `rate`, which is deprecated, is the
    inverse of `scale`.

    Raises ValueError unless just one of the two is given.
    """
    if (rate is None) == (scale is None):
        raise ValueError("Cannot specify both rate and scale" if rate is not None else "Must specify scale")
    if rate is not None:
        warnings.warn(
            "Gamma rate argument is deprecated and will stop working, use scale instead", FutureWarning, 2
        )
        scale = true_div(1.0, rate)
    return _gamma(shape, scale, **kwargs)


def chisquare(df: Any, size: Any = None, rng: Any = None, return_next_rng: bool = False) -> Any:
    """Return numbers of the chi-squared distribution of `df` degrees of freedom."""
    return gamma(true_div(df, 2.0), scale=2.0, size=size, rng=rng, return_next_rng=return_next_rng)


def rayleigh(scale: Any = 1.0, *, size: Any = None, rng: Any = None, return_next_rng: bool = False) -> Any:
    """Return numbers of the Rayleigh distribution: `scale` times square roots of chi-squared numbers."""
    scale = as_tensor_variable(scale)
    size = shape(scale) if size is None else size
    next_rng, squares = chisquare(2, size=size, rng=rng, return_next_rng=True)
    draws = mul(sqrt(squares), scale)
    return (next_rng, draws) if return_next_rng else draws
