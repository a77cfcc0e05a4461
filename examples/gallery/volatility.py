"""Two models of a changing volatility: a random walk that is given, and GARCH(1, 1) by `scan`."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

rng = np.random.default_rng(4)
returns = rng.standard_t(5, size=120) * 0.01
r = pt.as_tensor_variable(returns)

walk = pt.dvector("walk")
log_step = pt.dscalar("log_step")
log_nu = pt.dscalar("log_nu")
nu = pt.exp(log_nu)
steps = (walk[1:] - walk[:-1]) / pt.exp(log_step)
prior = (-0.5 * steps**2 - log_step).sum() - 0.5 * walk[0] ** 2
scaled = r / pt.exp(walk)
student = (
    pt.gammaln((nu + 1) / 2)
    - pt.gammaln(nu / 2)
    - 0.5 * pt.log(nu * np.pi)
    - walk
    - (nu + 1) / 2 * pt.log1p(scaled**2 / nu)
)
log_density = prior + student.sum()
inputs = [walk, log_step, log_nu]
stochastic = pytensor.function(inputs, [log_density, *pt.grad(log_density, inputs)])
point = rng.normal(-4, 0.1, size=120), -2.0, 1.5
of_walk = stochastic(*point)

omega, alpha, beta = pt.dscalars("omega", "alpha", "beta")
variances = pytensor.scan(
    lambda earlier, variance, omega, alpha, beta: omega + alpha * earlier**2 + beta * variance,
    sequences=r[:-1],
    outputs_info=pt.constant(1e-4, dtype="float64"),
    non_sequences=[omega, alpha, beta],
    return_updates=False,
)
garch = (-0.5 * (pt.log(2 * np.pi * variances) + r[1:] ** 2 / variances)).sum()
of_garch = pytensor.function([omega, alpha, beta], [garch, *pt.grad(garch, [omega, alpha, beta])])(
    1e-5, 0.1, 0.8
)
