"""A hidden Markov model: the forward algorithm by `scan` in logarithms, and its gradient."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

observations = np.array([0, 0, 1, 2, 2, 2, 1, 0, 0, 1, 2, 2, 0, 0, 0])

initial = pt.dvector("initial")
transition = pt.dmatrix("transition")
emission = pt.dmatrix("emission")
log_initial = pt.special.log_softmax(initial)
log_transition = pt.special.log_softmax(transition, axis=1)
log_emission = pt.special.log_softmax(emission, axis=1)
seen = pt.as_tensor_variable(observations)


def forward(observation, before, log_transition, log_emission):
    return log_emission[:, observation] + pt.logsumexp(before[:, None] + log_transition, axis=0)


alphas = pytensor.scan(
    forward,
    sequences=seen[1:],
    outputs_info=log_initial + log_emission[:, seen[0]],
    non_sequences=[log_transition, log_emission],
    return_updates=False,
)
log_likelihood = pt.logsumexp(alphas[-1])
parameters = [initial, transition, emission]
density = pytensor.function(parameters, log_likelihood)
gradient = pytensor.function(parameters, pt.grad(log_likelihood, parameters))

rng = np.random.default_rng(2)
point = [rng.normal(size=2), rng.normal(size=(2, 2)), rng.normal(size=(2, 3))]
value = density(*point)
slopes = gradient(*point)
filtered = pytensor.function(parameters, pt.special.softmax(alphas, axis=1))(*point)
