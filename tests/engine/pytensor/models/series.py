"""PyMC models of series, of what they follow from, and of loops over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.pytensorf import collect_default_updates


def autoregression() -> pm.Model:
    rng = np.random.default_rng(4)
    with pm.Model() as model:
        rho, noise = pm.Normal("rho", 0, 0.5, shape=2), pm.HalfNormal("noise")
        start = pm.Normal.dist(0, 1, shape=2)
        pm.AR("y", rho, sigma=noise, init_dist=start, observed=rng.normal(size=30))
    return model


def garch() -> pm.Model:
    rng = np.random.default_rng(5)
    with pm.Model() as model:
        omega, alpha = pm.HalfNormal("omega"), pm.Beta("alpha", 2, 5)
        beta = pm.Beta("beta", 2, 2)
        pm.GARCH11(
            "y", omega=omega, alpha_1=alpha, beta_1=beta, initial_vol=0.5, observed=rng.normal(size=20)
        )
    return model


def volatility() -> pm.Model:
    rng = np.random.default_rng(8)
    with pm.Model() as model:
        step = pm.Exponential("step", 10)
        path = pm.GaussianRandomWalk("path", sigma=step, shape=40, init_dist=pm.Normal.dist(0, 10))
        degrees = pm.Exponential("degrees", 0.1)
        pm.StudentT("y", degrees, lam=pm.math.exp(-2 * path), observed=rng.normal(size=40))
    return model


def random_walks() -> pm.Model:
    rng = np.random.default_rng(21)
    with pm.Model() as model:
        start = pm.MvNormal.dist(np.zeros(2), np.eye(2))
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=1.0, sd_dist=pm.Exponential.dist(1.0))
        path = pm.MvGaussianRandomWalk("path", mu=np.zeros(2), chol=factor, init_dist=start, shape=(15, 2))
        pm.Normal("y", path, 1.0, observed=rng.normal(size=(15, 2)).cumsum(0))
    return model


def vector_autoregression() -> pm.Model:
    rng = np.random.default_rng(22)
    seen = rng.normal(size=(25, 2))
    with pm.Model() as model:
        lags = pm.Normal("lags", 0, 0.5, shape=(2, 2, 2))
        mean = pm.Normal("base", shape=2) + sum(
            pm.math.dot(seen[1 - lag : 24 - lag], lags[lag].T) for lag in range(2)
        )
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("y", mean, chol=factor, observed=seen[2:])
    return model


def recurrence() -> pm.Model:
    """Return an autoregression, whose density and draws are a CustomDist's loop."""
    rng = np.random.default_rng(23)

    def series(start: Any, base: Any, weight: Any, noise: Any, size: Any) -> Any:
        def step(before: Any, base: Any, weight: Any, noise: Any) -> Any:
            now = pm.Normal.dist(base + weight * before, noise)
            return now, collect_default_updates([now])

        result, _ = pytensor.scan(
            step, outputs_info=[start], non_sequences=[base, weight, noise], n_steps=20, strict=True
        )
        return result

    with pm.Model() as model:
        start, base = pm.Normal("start"), pm.Normal("base")
        weight, noise = pm.Uniform("weight", -1, 1), pm.HalfNormal("noise")
        pm.CustomDist("y", start, base, weight, noise, dist=series, observed=rng.normal(size=20))
    return model


def oscillator() -> pm.Model:
    """Return prey and predators, integrated by steps of Runge and Kutta."""
    rng = np.random.default_rng(24)

    def slope(state: Any, rates: Any) -> Any:
        prey, hunters = state[0], state[1]
        return pt.stack(
            [rates[0] * prey - rates[1] * prey * hunters, rates[2] * prey * hunters - rates[3] * hunters]
        )

    def step(state: Any, rates: Any) -> Any:
        h = 0.1
        first = slope(state, rates)
        second = slope(state + 0.5 * h * first, rates)
        third = slope(state + 0.5 * h * second, rates)
        last = slope(state + h * third, rates)
        return state + h / 6 * (first + 2 * second + 2 * third + last)

    with pm.Model() as model:
        rates = pm.LogNormal("rates", [0, -1, -1, 0], 0.3, shape=4)
        start = pm.LogNormal("start", 0, 1, shape=2)
        path = pytensor.scan(
            step, outputs_info=[start], non_sequences=[rates], n_steps=40, return_updates=False
        )
        pm.LogNormal("y", pt.log(path[::4]), 0.3, observed=rng.lognormal(size=(10, 2)))
    return model


def state_space() -> pm.Model:
    """Return a local linear trend, filtered by Kalman's steps."""
    series = np.random.default_rng(25).normal(size=30).cumsum()
    moves, seen_as = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])

    def step(seen: Any, mean: Any, spread: Any, change: Any, noise: Any) -> Any:
        mean, spread = pt.dot(moves, mean), moves @ spread @ moves.T + pt.diag(change)
        surprise, common = seen - mean[0], spread @ seen_as
        total = common[0] + noise
        density = -0.5 * (pt.log(2 * np.pi * total) + surprise**2 / total)
        return mean + common * surprise / total, spread - pt.outer(common, common) / total, density

    with pm.Model() as model:
        change, noise = pm.HalfNormal("change", shape=2), pm.HalfNormal("noise")
        _, _, densities = pytensor.scan(
            step,
            sequences=[pt.as_tensor(series)],
            outputs_info=[pt.zeros(2), 10.0 * pt.eye(2), None],
            non_sequences=[change**2, noise**2],
            return_updates=False,
        )
        pm.Potential("y", densities.sum())
    return model


def hidden_states() -> pm.Model:
    """Return a hidden Markov chain of three states, summed out by its forward recursion."""
    rng = np.random.default_rng(26)
    seen = rng.normal(size=25)
    with pm.Model() as model:
        moves = pm.Dirichlet("moves", np.full((3, 3), 2.0))
        ordered = pm.distributions.transforms.ordered
        means = pm.Normal("means", [-1, 0, 1], 1, transform=ordered, shape=3)
        emitted = pm.logp(pm.Normal.dist(means, pm.HalfNormal("noise")), seen[:, None])

        def step(now: Any, before: Any, moves: Any) -> Any:
            return now + pm.math.logsumexp(before[:, None] + pt.log(moves), axis=0)

        last = pytensor.scan(
            step,
            sequences=[emitted[1:]],
            outputs_info=[emitted[0] - np.log(3.0)],
            non_sequences=[moves],
            return_updates=False,
        )[-1]
        pm.Potential("y", pt.logsumexp(last))
    return model


def change_point() -> pm.Model:
    """Return yearly counts whose rate changes in an unknown year."""
    counts = np.random.default_rng(27).poisson(np.repeat([3, 1], [20, 25]))
    with pm.Model() as model:
        year = pm.DiscreteUniform("year", lower=0, upper=44)
        early, late = pm.Exponential("early", 1), pm.Exponential("late", 1)
        pm.Poisson("y", pm.math.switch(year >= np.arange(45), early, late), observed=counts)
    return model


def stationary() -> pm.Model:
    rng = np.random.default_rng(28)
    with pm.Model() as model:
        pm.EulerMaruyama(
            "y",
            dt=0.1,
            sde_fn=lambda x, pull, noise: (-pull * x, noise),
            sde_pars=(pm.HalfNormal("pull"), pm.HalfNormal("noise")),
            init_dist=pm.Normal.dist(0, 1),
            observed=0.1 * rng.normal(size=20).cumsum(),
        )
    return model
