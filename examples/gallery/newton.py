"""A Poisson regression fitted by Newton's method: gradient and Hessian of a log likelihood."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

rng = np.random.default_rng(11)
design = np.column_stack([np.ones(200), rng.normal(size=(200, 3))])
counts = rng.poisson(np.exp(design @ np.array([0.5, 0.3, -0.2, 0.1])))

X = pt.as_tensor_variable(design)
y = pt.as_tensor_variable(counts)
beta = pt.dvector("beta")
eta = pt.dot(X, beta)
log_likelihood = (y * eta - pt.exp(eta) - pt.gammaln(y + 1)).sum()
gradient = pt.grad(log_likelihood, beta)
hessian = pytensor.gradient.hessian(log_likelihood, beta)
improved = beta - pt.linalg.solve(hessian, gradient)
step = pytensor.function([beta], [improved, log_likelihood])

estimate = np.zeros(4)
likelihoods = []
for _ in range(8):
    estimate, likelihood = step(estimate)
    likelihoods.append(likelihood)
covariance = pytensor.function([beta], pt.linalg.inv(-hessian))(estimate)
standard_errors = np.sqrt(np.diag(covariance))
