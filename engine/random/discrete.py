"""Draws of integers from numpy's distributions: each is the method of numpy's Generator of the same name."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.random.elementwise import ElementwiseRandomVariable
from engine.random.op import RandomVariable


class PoissonRV(ElementwiseRandomVariable):
    """Numbers of the Poisson distribution of mean `lam`."""

    name = "poisson"
    signature = "()->()"
    dtype = "int64"

    def __call__(self, lam: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((lam,), size, **kwargs)


class GeometricRV(ElementwiseRandomVariable):
    """Numbers of trials up to the first success of probability `p`."""

    name = "geometric"
    signature = "()->()"
    dtype = "int64"

    def __call__(self, p: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((p,), size, **kwargs)


class HyperGeometricRV(RandomVariable):
    """Numbers of good things among `nsample` of `ngood` good and `nbad` bad ones."""

    name = "hypergeometric"
    signature = "(),(),()->()"
    dtype = "int64"

    def __call__(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((ngood, nbad, nsample), size, **kwargs)


class BinomialRV(ElementwiseRandomVariable):
    """Numbers of successes of probability `p` in `n` trials."""

    name = "binomial"
    signature = "(),()->()"
    dtype = "int64"

    def __call__(self, n: Any, p: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((n, p), size, **kwargs)


class IntegersRV(RandomVariable):
    """Integers from `low` to before `high`, all equally likely; with one bound, from 0 to before it."""

    name = "integers"
    signature = "(),()->()"
    dtype = "int64"

    def __call__(self, low: Any, high: Any = None, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((0, low) if high is None else (low, high), size, **kwargs)


class CategoricalRV(RandomVariable):
    """Positions in the vector `p`, each with the probability that stands there."""

    name = "categorical"
    signature = "(p)->()"
    dtype = "int64"

    def __call__(self, p: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((p,), size, **kwargs)

    def rng_fn(self, rng: Any, p: Any, size: Any) -> Any:
        batch = p.shape[:-1]
        size = batch if size is None else size
        if len(size) < len(batch) or np.broadcast_shapes(size, batch) != size:
            raise ValueError("`size` is incompatible with the shape of `p`")
        uniform = rng.uniform(size=size)
        return np.vectorize(np.searchsorted, otypes=[int], signature="(n),()->()")(p.cumsum(axis=-1), uniform)


poisson = PoissonRV()
geometric = GeometricRV()
hypergeometric = HyperGeometricRV()
binomial = BinomialRV()
integers = IntegersRV()
categorical = CategoricalRV()
