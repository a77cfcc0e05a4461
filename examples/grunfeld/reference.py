"""The same models in numpy, derived by hand and written another way: the independent check of the
demo's estimate.

Parameters are one vector: means (3), log spreads (3), log noise (1), then the standardised effects
of the firms, 3 rows of as many columns as there are firms. The three are intercept, slope on value,
slope on capital.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from panel import Panel

Vector = np.ndarray


def log_density(name: str, theta: Vector, panel: Panel) -> tuple[float, Vector]:
    """Return the log density of the model `name` at `theta`, up to a constant, and its gradient."""
    means, log_spreads, log_noise, z = theta[:3], theta[3:6], theta[6], theta[7:].reshape(3, -1)
    spreads, noise = np.exp(log_spreads), np.exp(log_noise)
    design = np.stack([np.ones_like(panel.value), panel.value, panel.capital])
    coefficients = means[:, None] + spreads[:, None] * z
    scaled = (panel.invest - np.einsum("kn,kn->n", design, coefficients[:, panel.firm])) / noise
    likelihood, slope = noise_density(name, scaled)

    by_row = -slope / noise * design
    by_coefficient = np.stack([np.bincount(panel.firm, row, z.shape[1]) for row in by_row])
    prior = (
        -0.5 * (means @ means + np.sum(z**2) + spreads @ spreads + noise**2) + log_spreads.sum() + log_noise
    )
    gradient = np.concatenate(
        [
            by_coefficient.sum(axis=1) - means,
            (by_coefficient * z).sum(axis=1) * spreads - spreads**2 + 1.0,
            [-(slope @ scaled) - scaled.size - noise**2 + 1.0],
            (by_coefficient * spreads[:, None] - z).ravel(),
        ]
    )
    return float(likelihood - scaled.size * log_noise + prior), gradient


def noise_density(name: str, scaled: Vector) -> tuple[float, Vector]:
    """Return the log density of the scaled residuals, and its derivative by each."""
    if name == "normal":
        return -0.5 * float(scaled @ scaled), -scaled
    return -2.5 * float(np.log1p(scaled**2 / 4.0).sum()), -5.0 * scaled / (4.0 + scaled**2)


def maximum(name: str, panel: Panel, starts: int = 3) -> tuple[float, Vector]:
    """Return the highest log density found from `starts` random points, and where it is."""

    def cost(theta: Vector) -> tuple[float, Vector]:
        density, gradient = log_density(name, theta, panel)
        return -density, -gradient

    random = np.random.default_rng(1958)
    size = 7 + 3 * len(panel.firms)
    fits = [
        minimize(cost, 0.5 * random.standard_normal(size), jac=True, method="BFGS", options={"gtol": 1e-7})
        for _ in range(starts)
    ]
    best = min(fits, key=lambda fit: float(fit.fun))
    return -float(best.fun), best.x
