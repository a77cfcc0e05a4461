"""Draws of vectors: normal ones, and those that divide a whole. numpy draws a batch of the latter one by
one."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.random.op import RandomVariable

METHODS = ("cholesky", "svd", "eigh")


class MvNormalRV(RandomVariable):
    """Normal vectors of mean `mean` and covariance `cov`, of which `method` takes a square root."""

    name = "multivariate_normal"
    signature = "(n),(n,n)->(n)"
    dtype = "floatX"
    __props__ = (*RandomVariable.__props__, "method")

    def __init__(self, *args: Any, method: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if method not in METHODS:
            raise ValueError(
                f"Unknown method {method}. The method must be one of 'cholesky', 'svd', or 'eigh'."
            )
        self.method = method

    def __call__(self, mean: Any, cov: Any, size: Any = None, method: Any = None, **kwargs: Any) -> Any:
        if method is None or method == self.method:
            return self.draw((mean, cov), size, **kwargs)
        return type(self)(**{**self.props_dict(), "method": method}).draw((mean, cov), size, **kwargs)

    def rng_fn(self, rng: Any, mean: Any, cov: Any, size: Any) -> Any:
        size = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if size is None else size
        root = self._root(cov)
        draws = rng.normal(size=(*size, mean.shape[-1]))
        # In place, as PyTensor does: numpy refuses a batch that is larger than the size.
        np.einsum("...ij,...j->...i", root, draws, optimize=False, out=draws)
        draws += mean
        return draws

    def _root(self, cov: Any) -> Any:
        """Return a matrix whose product with its own transpose is `cov`."""
        if self.method == "cholesky":
            return np.linalg.cholesky(cov)
        if self.method == "svd":
            vectors, values, _ = np.linalg.svd(cov)
        else:
            values, vectors = np.linalg.eigh(cov)
        return vectors * np.sqrt(values)[..., None, :]


class DirichletRV(RandomVariable):
    """Vectors of positive numbers whose sum is 1."""

    name = "dirichlet"
    signature = "(a)->(a)"
    dtype = "floatX"

    def __call__(self, alphas: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((alphas,), size, **kwargs)

    def rng_fn(self, rng: Any, alphas: Any, size: Any) -> Any:
        if alphas.ndim == 1:
            return rng.dirichlet(alphas, size)
        size = alphas.shape[:-1] if size is None else size
        alphas = np.broadcast_to(alphas, (*size, alphas.shape[-1]))
        draws = np.empty(alphas.shape)
        for at in np.ndindex(size):
            draws[at] = rng.dirichlet(alphas[at])
        return draws


class MultinomialRV(RandomVariable):
    """Numbers of times that each position of `p` comes up in `n` draws with those probabilities."""

    name = "multinomial"
    signature = "(),(p)->(p)"
    dtype = "int64"

    def __call__(self, n: Any, p: Any, size: Any = None, **kwargs: Any) -> Any:
        return self.draw((n, p), size, **kwargs)

    def rng_fn(self, rng: Any, n: Any, p: Any, size: Any) -> Any:
        if n.ndim == 0 and p.ndim == 1:
            return rng.multinomial(n, p, size)
        size = np.broadcast_shapes(n.shape, p.shape[:-1]) if size is None else size
        n, p = np.broadcast_to(n, size), np.broadcast_to(p, (*size, p.shape[-1]))
        draws = np.empty(p.shape, "int64")
        for at in np.ndindex(size):
            draws[at] = rng.multinomial(n[at], p[at])
        return draws


multivariate_normal = MvNormalRV(method="cholesky")
dirichlet = DirichletRV()
multinomial = MultinomialRV()
