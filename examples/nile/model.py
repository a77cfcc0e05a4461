"""A local level model of an annual flow, as graphs: its likelihood by a Kalman filter, and the maximum
of that.

    flow[t]    = level[t] + noise,    noise ~ Normal(0, exp(theta[0]))
    level[t+1] = level[t] + step,     step  ~ Normal(0, exp(theta[1]))

Nothing is known of the first level: it is as the first year says, and the likelihood is that of the
years that follow (Durbin and Koopman 2012, sections 2.2 and 2.9).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from engine.tensor.optimize import minimize

Variable = Any


def log_likelihood(theta: Variable, flow: np.ndarray) -> Variable:
    """Return the log likelihood of `flow` at `theta`, the logarithms of both variances."""
    noise, step = pt.exp(theta[0]), pt.exp(theta[1])
    years = pt.as_tensor_variable(flow)

    def year(flow: Variable, level: Variable, variance: Variable, noise: Variable, step: Variable) -> Any:
        """What is known of the level before the next year, and the log density of this year's flow."""
        surprise = flow - level
        total = variance + noise
        gain = variance / total
        density = -0.5 * (np.log(2.0 * np.pi) + pt.log(total) + pt.sqr(surprise) / total)
        return level + gain * surprise, variance * (1.0 - gain) + step, density

    (_, _, densities), _ = engine.scan(
        year,
        sequences=[years[1:]],
        outputs_info=[years[0], noise + step, None],
        non_sequences=[noise, step],
    )
    return pt.sum(densities)


def likelihood(flow: np.ndarray) -> tuple[list[Variable], list[Variable]]:
    """Return inputs (theta) and outputs (log likelihood, its gradient)."""
    theta = pt.vector("theta", shape=(2,))
    value = log_likelihood(theta, flow)
    return [theta], [value, engine.grad(value, theta)]


def maximum(flow: np.ndarray) -> tuple[list[Variable], list[Variable]]:
    """Return inputs (where to start) and outputs (where the likelihood is highest, whether that was
    found).
    """
    theta = pt.vector("theta", shape=(2,))
    solution, success = minimize(
        -log_likelihood(theta, flow), theta, method="BFGS", optimizer_kwargs={"options": {"gtol": 1e-6}}
    )
    return [theta], [solution, success]
