"""Hamiltonian Monte Carlo on a funnel: leapfrog steps by `scan`, the draws by numpy."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

position, momentum = pt.dvectors("position", "momentum")
step_size = pt.dscalar("step_size")


def log_density(q):
    width = q[0]
    return -0.5 * (width / 3) ** 2 - 0.5 * (q[1:] ** 2).sum() * pt.exp(-width) - 0.5 * 2 * width


def leapfrog(q, p, step_size):
    p = p + step_size / 2 * pytensor.grad(log_density(q), q)
    q = q + step_size * p
    p = p + step_size / 2 * pytensor.grad(log_density(q), q)
    return q, p


positions, momenta = pytensor.scan(
    leapfrog, outputs_info=[position, momentum], non_sequences=step_size, n_steps=8, return_updates=False
)
energy_before = 0.5 * (momentum**2).sum() - log_density(position)
energy_after = 0.5 * (momenta[-1] ** 2).sum() - log_density(positions[-1])
propose = pytensor.function([position, momentum, step_size], [positions[-1], energy_before - energy_after])

rng = np.random.default_rng(9)
q = np.zeros(3)
chain = []
for _ in range(40):
    proposed, log_ratio = propose(q, rng.normal(size=3), 0.1)
    if np.log(rng.uniform()) < log_ratio:
        q = proposed
    chain.append(q)
