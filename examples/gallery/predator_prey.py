"""A differential equation by Runge-Kutta steps in a `scan`, with gradients by its parameters."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

theta = pt.dvector("theta")
start = pt.dvector("start")
dt = 0.05


def change(state, theta):
    prey, predators = state[0], state[1]
    return pt.stack(
        [
            theta[0] * prey - theta[1] * prey * predators,
            theta[2] * prey * predators - theta[3] * predators,
        ]
    )


def step(state, theta):
    k1 = change(state, theta)
    k2 = change(state + dt / 2 * k1, theta)
    k3 = change(state + dt / 2 * k2, theta)
    k4 = change(state + dt * k3, theta)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


states = pytensor.scan(step, outputs_info=start, non_sequences=theta, n_steps=200, return_updates=False)
path = pytensor.function([start, theta], states)
loss = ((states[::20] - 1.0) ** 2).mean()
gradient = pytensor.function([start, theta], pt.grad(loss, [start, theta]))

point = np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.1, 0.4])
population = path(*point)
slopes = gradient(*point)
