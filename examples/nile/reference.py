"""The same likelihood in numpy without a filter, and its maximum by SciPy: the independent check of
the demo.

With nothing known of the first level, the likelihood of the local level model is that of the
differences y[t+1] - y[t]. They are jointly normal with mean 0 and a covariance that has level + 2
noise on its diagonal and -noise beside it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

Vector = np.ndarray


def log_likelihood(theta: Vector, flow: Vector) -> tuple[float, Vector]:
    """Return the log likelihood at `theta` (log variance of noise, log variance of the level's steps), and
    its gradient.
    """
    differences = np.diff(flow)
    size = differences.size
    variances = np.exp(theta)
    shapes = (2.0 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1), np.eye(size))
    inverse = np.linalg.inv(variances[0] * shapes[0] + variances[1] * shapes[1])
    scaled = inverse @ differences
    value = -0.5 * (size * np.log(2.0 * np.pi) - np.linalg.slogdet(inverse)[1] + differences @ scaled)
    slopes = [-0.5 * (np.sum(inverse * shape) - scaled @ shape @ scaled) for shape in shapes]
    return float(value), np.array(slopes) * variances


def finite_differences(theta: Vector, flow: Vector, step: float = 1e-5) -> Vector:
    """Return the gradient of the log likelihood by central differences of the second order."""
    rows = [step * row for row in np.eye(theta.size)]
    ups, downs = ([log_likelihood(theta + sign * row, flow)[0] for row in rows] for sign in (1.0, -1.0))
    return (np.array(ups) - np.array(downs)) / (2.0 * step)


def maximum(flow: Vector, start: Vector) -> tuple[float, Vector]:
    """Return the highest log likelihood that SciPy finds from `start`, and where it is."""

    def cost(theta: Vector) -> tuple[float, Vector]:
        value, gradient = log_likelihood(theta, flow)
        return -value, -gradient

    found = minimize(cost, start, jac=True, method="BFGS", options={"gtol": 1e-7})
    return -float(found.fun), found.x
