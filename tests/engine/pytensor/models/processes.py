"""PyMC models of Gaussian processes and of neighbours in space."""

from __future__ import annotations

import numpy as np
import pymc as pm


def gaussian_process() -> pm.Model:
    with pm.Model() as model:
        points = np.linspace(0, 1, 12)[:, None]
        scale, length = pm.HalfNormal("scale"), pm.Gamma("length", 2, 1)
        process = pm.gp.Marginal(cov_func=scale**2 * pm.gp.cov.Matern52(1, length))
        noise = pm.HalfNormal("noise")
        process.marginal_likelihood("y", X=points, y=np.sin(6 * points[:, 0]), sigma=noise)
    return model


def latent_process() -> pm.Model:
    rng = np.random.default_rng(30)
    points = np.linspace(0, 1, 10)[:, None]
    with pm.Model() as model:
        kernel = pm.HalfNormal("scale") ** 2 * pm.gp.cov.ExpQuad(1, pm.InverseGamma("length", 3, 1))
        f = pm.gp.Latent(cov_func=kernel).prior("f", X=points)
        pm.Bernoulli("y", logit_p=f, observed=rng.integers(0, 2, 10))
    return model


def sparse_process() -> pm.Model:
    rng = np.random.default_rng(31)
    points = np.linspace(0, 1, 20)[:, None]
    with pm.Model() as model:
        kernel = pm.gp.cov.Periodic(1, period=0.5, ls=pm.HalfNormal("length")) + pm.gp.cov.Linear(1, c=0.5)
        process = pm.gp.MarginalApprox(cov_func=kernel, approx="VFE")
        noise = pm.HalfNormal("noise")
        process.marginal_likelihood("y", X=points, Xu=points[::5], y=rng.normal(size=20), sigma=noise)
    return model


def basis() -> pm.Model:
    rng = np.random.default_rng(10)
    with pm.Model() as model:
        points = np.linspace(0, 1, 30)[:, None]
        process = pm.gp.HSGP(m=[6], c=1.5, cov_func=pm.gp.cov.ExpQuad(1, ls=pm.HalfNormal("length")))
        pm.Poisson("y", pm.math.exp(process.prior("f", X=points)), observed=rng.poisson(1, 30))
    return model


def grid_process() -> pm.Model:
    """Return a Gaussian process on a grid, whose covariance is a product of Kronecker's."""
    rng = np.random.default_rng(32)
    rows, columns = np.linspace(0, 1, 4)[:, None], np.linspace(0, 1, 3)[:, None]
    with pm.Model() as model:
        kernels = [pm.gp.cov.Matern32(1, pm.HalfNormal(name)) for name in ("down", "across")]
        process = pm.gp.MarginalKron(cov_funcs=kernels)
        process.marginal_likelihood(
            "y", Xs=[rows, columns], y=rng.normal(size=12), sigma=pm.HalfNormal("noise")
        )
    return model


def neighbours() -> pm.Model:
    rng = np.random.default_rng(33)
    ring = np.roll(np.eye(8), 1, 0) + np.roll(np.eye(8), -1, 0)
    with pm.Model() as model:
        share = pm.Beta("share", 1, 1)
        alone = pm.Normal("alone", shape=8)
        shared = pm.ICAR("shared", W=ring)
        mixed = pm.math.sqrt(1 - share) * alone + pm.math.sqrt(share) * shared
        pm.CAR("car", mu=np.zeros(8), W=ring, alpha=pm.Beta("alpha", 2, 2), tau=1.0)
        pm.Poisson("y", pm.math.exp(pm.Normal("base") + mixed), observed=rng.poisson(2, 8))
    return model
