"""PyMC models of vectors and matrices that vary together."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt


def correlated() -> pm.Model:
    rng = np.random.default_rng(3)
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("y", pm.Normal("means", shape=3), chol=factor, observed=rng.normal(size=(20, 3)))
    return model


def varying_slopes() -> pm.Model:
    rng = np.random.default_rng(40)
    groups, covariate = np.repeat(np.arange(6), 5), rng.normal(size=30)
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        effects = pm.Deterministic("effects", (factor @ pm.Normal("offsets", shape=(2, 6))).T)
        mean = effects[groups, 0] + effects[groups, 1] * covariate
        pm.Normal("y", mean, pm.Exponential("noise", 1), observed=rng.normal(size=30))
    return model


def correlations() -> pm.Model:
    rng = np.random.default_rng(41)
    with pm.Model() as model:
        matrix = pm.LKJCorr("matrix", n=3, eta=2.0)
        scales = pm.HalfNormal("scales", shape=3)
        covariance = pt.diag(scales) @ matrix @ pt.diag(scales)
        pm.MvStudentT("y", nu=5, mu=np.zeros(3), scale=covariance, observed=rng.normal(size=(10, 3)))
    return model


def copula() -> pm.Model:
    """Return two marginal distributions joined by a normal copula."""
    rng = np.random.default_rng(42)
    first, second = rng.exponential(1, 15), rng.normal(size=15)
    with pm.Model() as model:
        rate, spread = pm.HalfNormal("rate"), pm.HalfNormal("spread")
        margins = [pm.Exponential.dist(rate), pm.Normal.dist(0, spread)]
        parts = list(zip(margins, (first, second), strict=True))
        shares = pt.stack([pt.exp(pm.logcdf(margin, seen)) for margin, seen in parts], axis=-1)
        scores = pt.sqrt(2.0) * pt.erfinv(2 * shares - 1)
        factor = pm.LKJCholeskyCov("factor", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1), compute_corr=False)
        chol = pm.expand_packed_triangular(2, factor)
        joint = pm.logp(pm.MvNormal.dist(np.zeros(2), chol=chol), scores)
        alone = pm.logp(pm.Normal.dist(0, 1), scores).sum(axis=-1)
        pm.Potential("y", pt.sum(joint - alone) + sum(pm.logp(m, s).sum() for m, s in parts))
    return model


def matrices() -> pm.Model:
    rng = np.random.default_rng(43)
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", shape=2)
        rows = pm.Wishart("rows", nu=5, V=np.eye(2), initval=2 * np.eye(2))
        pm.MatrixNormal(
            "y", np.zeros((2, 2)), rowcov=rows, colcov=pt.diag(scale), observed=rng.normal(size=(2, 2))
        )
        pm.KroneckerNormal(
            "k", mu=np.zeros(4), covs=[pt.diag(scale), np.eye(2)], sigma=0.5, observed=rng.normal(size=4)
        )
    return model


def factors() -> pm.Model:
    """Return an analysis of two factors; loadings are lower triangular."""
    rng = np.random.default_rng(44)
    with pm.Model() as model:
        packed = pm.Normal("packed", shape=9)
        loadings = pt.set_subtensor(pt.zeros((5, 2))[np.tril_indices(5, 0, 2)], packed)
        noise = pm.HalfNormal("noise", shape=5)
        covariance = loadings @ loadings.T + pt.diag(noise**2)
        pm.MvNormal("y", np.zeros(5), covariance, observed=rng.normal(size=(12, 5)))
    return model
