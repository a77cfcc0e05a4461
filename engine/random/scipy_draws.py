"""Draws from SciPy's distributions, with a generator of numpy's. SciPy is imported by the first of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import broadcast_shapes

from engine.random.op import RandomVariable


class ScipyRandomVariable(RandomVariable):
    """A draw by SciPy. Subclasses implement `rng_fn_scipy`, with the arguments of `rng_fn`."""

    def rng_fn_scipy(self, *args: Any, **kwargs: Any) -> Any:
        """Return what `rng_fn` returns for these arguments; axes of length 1 may be missing."""
        raise NotImplementedError(f"{type(self).__name__} must implement rng_fn_scipy()")

    def rng_fn(self, *args: Any, **kwargs: Any) -> Any:
        draws = np.asarray(self.rng_fn_scipy(*args, **kwargs))
        params, size = args[1:-1], args[-1]
        if size is not None:
            return draws
        # SciPy drops axes of length 1.
        due = broadcast_shapes(*map(np.shape, params))
        return draws if draws.shape == due else np.broadcast_to(draws, due).copy()


def _distribution(name: str) -> Any:
    from scipy import stats

    return getattr(stats, name)


class _LocationScale(ScipyRandomVariable):
    """A draw of floats by the distribution `scipy_name` of SciPy's, at `loc` in units of `scale`."""

    signature = "(),()->()"
    dtype = "floatX"
    scipy_name = ""

    def __call__(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((loc, scale), size, **kwargs)

    def rng_fn_scipy(self, rng: Any, loc: Any, scale: Any, size: Any) -> Any:
        return _distribution(self.scipy_name).rvs(loc=loc, scale=scale, size=size, random_state=rng)


class HalfNormalRV(_LocationScale):
    """Distances above `loc` of normal numbers of standard deviation `scale`."""

    name = "halfnormal"
    scipy_name = "halfnorm"


class CauchyRV(_LocationScale):
    """Numbers of the Cauchy distribution with median `loc`."""

    name = scipy_name = "cauchy"


class HalfCauchyRV(_LocationScale):
    """Numbers of the Cauchy distribution above `loc`."""

    name = scipy_name = "halfcauchy"


class GumbelRV(_LocationScale):
    """Numbers of the Gumbel distribution of largest values with mode `loc`."""

    name = "gumbel"
    scipy_name = "gumbel_r"

    def __call__(self, loc: Any, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((loc, scale), size, **kwargs)


class ParetoRV(ScipyRandomVariable):
    """Numbers of the Pareto distribution of exponent `b` above `scale`."""

    name = "pareto"
    signature = "(),()->()"
    dtype = "floatX"

    def __call__(self, b: Any, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((b, scale), size, **kwargs)

    def rng_fn_scipy(self, rng: Any, b: Any, scale: Any, size: Any) -> Any:
        return _distribution("pareto").rvs(b, scale=scale, size=size, random_state=rng)


class _ShapeLocationScale(ScipyRandomVariable):
    """A draw of floats with a parameter of the distribution, at `loc` in units of `scale`."""

    signature = "(),(),()->()"
    dtype = "floatX"

    def rng_fn_scipy(self, rng: Any, parameter: Any, loc: Any, scale: Any, size: Any) -> Any:
        return _distribution(self.name).rvs(parameter, loc=loc, scale=scale, size=size, random_state=rng)


class TruncExponentialRV(_ShapeLocationScale):
    """Numbers of the exponential distribution up to `b`, in units of `scale` above `loc`."""

    name = "truncexpon"

    def __call__(self, b: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((b, loc, scale), size, **kwargs)


class StudentTRV(_ShapeLocationScale):
    """Numbers of Student's t distribution of `df` degrees of freedom."""

    name = "t"

    def __call__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((df, loc, scale), size, **kwargs)


class GenGammaRV(ScipyRandomVariable):
    """Numbers of the generalized gamma distribution of shapes `alpha` and `p`, and of scale `lambd`."""

    name = "gengamma"
    signature = "(),(),()->()"
    dtype = "floatX"

    def __call__(
        self, alpha: Any = 1.0, p: Any = 1.0, lambd: Any = 1.0, size: Any = None, **kwargs: Any
    ) -> Any:
        return self.draw((alpha, p, lambd), size, **kwargs)

    def rng_fn_scipy(self, rng: Any, alpha: Any, p: Any, lambd: Any, size: Any) -> Any:
        return _distribution("gengamma").rvs(alpha / p, p, scale=lambd, size=size, random_state=rng)


class BernoulliRV(ScipyRandomVariable):
    """Ones with probability `p`, and zeros."""

    name = "bernoulli"
    signature = "()->()"
    dtype = "int64"

    def __call__(self, p: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((p,), size, **kwargs)

    def rng_fn_scipy(self, rng: Any, p: Any, size: Any) -> Any:
        return _distribution("bernoulli").rvs(p, size=size, random_state=rng)


class NegBinomialRV(ScipyRandomVariable):
    """Numbers of failures before `n` successes of probability `p`."""

    name = "negative_binomial"
    signature = "(),()->()"
    dtype = "int64"

    def __call__(self, n: Any, p: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((n, p), size, **kwargs)

    def rng_fn_scipy(self, rng: Any, n: Any, p: Any, size: Any) -> Any:
        return _distribution("nbinom").rvs(n, p, size=size, random_state=rng)


class BetaBinomialRV(ScipyRandomVariable):
    """Numbers of successes in `n` trials, whose probability is of the beta distribution of `a` and `b`."""

    name = "beta_binomial"
    signature = "(),(),()->()"
    dtype = "int64"

    def __call__(self, n: Any, a: Any, b: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((n, a, b), size, **kwargs)

    def rng_fn_scipy(self, rng: Any, n: Any, a: Any, b: Any, size: Any) -> Any:
        return _distribution("betabinom").rvs(n, a, b, size=size, random_state=rng)


halfnormal = HalfNormalRV()
cauchy = CauchyRV()
halfcauchy = HalfCauchyRV()
gumbel = GumbelRV()
pareto = ParetoRV()
truncexpon = TruncExponentialRV()
t = StudentTRV()
gengamma = GenGammaRV()
bernoulli = BernoulliRV()
nbinom = negative_binomial = NegBinomialRV()
betabinom = BetaBinomialRV()
