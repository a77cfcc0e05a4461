"""The marginal likelihood of a Gaussian process, its gradient, and predictions at new points."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.tensor.linalg import cholesky, solve_triangular

rng = np.random.default_rng(5)
places = np.sort(rng.uniform(0, 10, size=25))[:, None]
observed = np.sin(places[:, 0]) + 0.1 * rng.normal(size=25)
new_places = np.linspace(0, 10, 7)[:, None]

X, X_new = pt.dmatrices("X", "X_new")
y = pt.dvector("y")
theta = pt.dvector("theta")
amplitude, length, noise = pt.exp(theta[0]), pt.exp(theta[1]), pt.exp(theta[2])


def covariance(left, right):
    squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2 * pt.dot(left, right.T)
    return amplitude**2 * pt.exp(-0.5 * pt.maximum(squared, 0.0) / length**2)


K = covariance(X, X) + (noise**2 + 1e-8) * pt.eye(X.shape[0])
L = cholesky(K)
whitened = solve_triangular(L, y, lower=True)
log_likelihood = (
    -0.5 * (whitened**2).sum()
    - pt.log(pt.diagonal(L)).sum()
    - 0.5 * X.shape[0].astype("float64") * np.log(2 * np.pi)
)
objective = pytensor.function([X, y, theta], [log_likelihood, pt.grad(log_likelihood, theta)])

point = np.array([0.0, 0.3, -1.5])
likelihood, slope = objective(places, observed, point)

across = solve_triangular(L, covariance(X, X_new), lower=True)
mean = pt.dot(across.T, whitened)
variance = amplitude**2 - (across**2).sum(axis=0)
predict = pytensor.function([X, y, X_new, theta], [mean, variance])
means, variances = predict(places, observed, new_places, point)
