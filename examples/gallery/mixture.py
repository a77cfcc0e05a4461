"""A mixture of normal distributions with the assignments summed out, and its gradient."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

rng = np.random.default_rng(8)
data = np.concatenate([rng.normal(-2, 0.5, size=60), rng.normal(1, 1, size=90), [40.0]])

weights = pt.dvector("weights")
means = pt.dvector("means")
log_scales = pt.dvector("log_scales")
x = pt.as_tensor_variable(data)[:, None]

log_weights = pt.special.log_softmax(weights, axis=0)
z = (x - means) / pt.exp(log_scales)
components = log_weights - 0.5 * z**2 - log_scales - 0.5 * np.log(2 * np.pi)
log_density = pt.logsumexp(components, axis=1).sum()
responsibility = pt.special.softmax(components, axis=1)

density = pytensor.function([weights, means, log_scales], log_density)
gradient = pytensor.function([weights, means, log_scales], pt.grad(log_density, [weights, means, log_scales]))
assigned = pytensor.function([weights, means, log_scales], responsibility)

point = [np.array([0.1, 0.2]), np.array([-2.1, 1.2]), np.array([-0.7, 0.1])]
value = density(*point)
slopes = gradient(*point)
first_assignments = assigned(*point)[:5]
