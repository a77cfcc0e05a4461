"""Random numbers: draws from numpy's generators, which are values of a graph. `pt.random`.

    rng = pt.random.shared_rng(seed=1)
    next_rng, x = pt.random.normal(size=3, rng=rng, return_next_rng=True)
    f = engine.function([], x, updates={rng: next_rng})

Given a generator in the same state, the numbers are those of numpy, of SciPy and of PyTensor.
"""

from engine.random.choosing import ChoiceWithoutReplacement, PermutationRV, choice, permutation
from engine.random.continuous import (
    beta,
    chisquare,
    exponential,
    gamma,
    invgamma,
    laplace,
    logistic,
    lognormal,
    normal,
    rayleigh,
    standard_normal,
    triangular,
    uniform,
    vonmises,
    wald,
    weibull,
)
from engine.random.discrete import binomial, categorical, geometric, hypergeometric, integers, poisson
from engine.random.multivariate import dirichlet, multinomial, multivariate_normal
from engine.random.op import RandomVariable, default_rng
from engine.random.scipy_draws import (
    bernoulli,
    betabinom,
    cauchy,
    gengamma,
    gumbel,
    halfcauchy,
    halfnormal,
    nbinom,
    negative_binomial,
    pareto,
    t,
    truncexpon,
)
from engine.random.shared import shared_rng
from engine.random.stream import RandomStream
from engine.random.type import random_generator_type, rng

__all__ = [
    "ChoiceWithoutReplacement",
    "PermutationRV",
    "RandomStream",
    "RandomVariable",
    "bernoulli",
    "beta",
    "betabinom",
    "binomial",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "gamma",
    "gengamma",
    "geometric",
    "gumbel",
    "halfcauchy",
    "halfnormal",
    "hypergeometric",
    "integers",
    "invgamma",
    "laplace",
    "logistic",
    "lognormal",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "negative_binomial",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "random_generator_type",
    "rayleigh",
    "rng",
    "shared_rng",
    "standard_normal",
    "t",
    "triangular",
    "truncexpon",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
]
