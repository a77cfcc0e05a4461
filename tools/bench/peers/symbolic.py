"""The models as graphs, written once: PyTensor and this engine have the same names for what they need.

Each function takes the framework and returns inputs and outputs of what is compiled: a value and
its gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import values

Variable = Any
Graph = tuple[list[Variable], list[Variable]]


@dataclass(frozen=True)
class Framework:
    """The parts of a model: tensors, gradients, Ops that hold a graph, loops, and searches for a minimum."""

    pt: Any
    grad: Callable[..., Any]
    op_from_graph: Callable[..., Any]
    scan: Callable[..., Any]
    minimize: Callable[..., Any]


def regression(framework: Framework) -> Graph:
    """The demo's hierarchical regression: 220 rows, 11 firms, 40 parameters."""
    pt, panel = framework.pt, values.panel()
    names = ("intercept", "value", "capital")
    population = [pt.scalar(name) for name in names]
    spreads = [pt.scalar(f"log_spread_{name}") for name in names]
    noise = pt.scalar("log_noise")
    effects = [pt.vector(f"z_{name}") for name in names]
    firm = pt.as_tensor_variable(panel.firm)
    intercept, value, capital = (
        (mean + pt.exp(spread) * effect)[firm]
        for mean, spread, effect in zip(population, spreads, effects, strict=True)
    )
    predicted = (
        intercept
        + value * pt.as_tensor_variable(panel.value)
        + capital * pt.as_tensor_variable(panel.capital)
    )
    scaled = (pt.as_tensor_variable(panel.invest) - predicted) * pt.exp(-noise)
    normal = sum(pt.sum(pt.sqr(parameter)) for parameter in (*population, *effects))
    prior = -0.5 * (normal + sum(pt.exp(2.0 * s) for s in (*spreads, noise))) + sum(spreads) + noise
    density = prior - 0.5 * pt.sum(pt.sqr(scaled)) - float(panel.firm.size) * noise
    inputs = [*population, *spreads, noise, *effects]
    return inputs, [density, *framework.grad(density, inputs)]


def kalman(framework: Framework) -> Graph:
    """The local level model of the Nile's flow: 99 steps of two states."""
    pt = framework.pt
    theta = pt.vector("theta", shape=(2,))
    noise, step = pt.exp(theta[0]), pt.exp(theta[1])
    years = pt.as_tensor_variable(values.flow())

    def year(flow: Variable, level: Variable, variance: Variable, noise: Variable, step: Variable) -> Any:
        surprise, total = flow - level, variance + noise
        gain = variance / total
        density = -0.5 * (np.log(2.0 * np.pi) + pt.log(total) + pt.sqr(surprise) / total)
        return level + gain * surprise, variance * (1.0 - gain) + step, density

    (_, _, densities), _ = framework.scan(
        year,
        sequences=[years[1:]],
        outputs_info=[years[0], noise + step, None],
        non_sequences=[noise, step],
    )
    value = pt.sum(densities)
    return [theta], [value, framework.grad(value, theta)]


def recurrent(framework: Framework) -> Graph:
    """An Elman network: 50 steps, 8 inputs, 16 states, and the square of the last state."""
    pt = framework.pt
    inputs, into, over, bias = pt.matrix("inputs"), pt.matrix("into"), pt.matrix("over"), pt.vector("bias")

    def step(row: Variable, state: Variable, into: Variable, over: Variable, bias: Variable) -> Any:
        return pt.tanh(pt.dot(row, into) + pt.dot(state, over) + bias)

    states, _ = framework.scan(
        step,
        sequences=[inputs],
        outputs_info=[pt.zeros((values.WIDTH,))],
        non_sequences=[into, over, bias],
    )
    value = pt.sum(pt.sqr(states[-1]))
    return [inputs, into, over, bias], [value, *framework.grad(value, [into, over, bias])]


def layer(framework: Framework) -> Any:
    """One layer, as an Op."""
    pt = framework.pt
    state, weights = pt.vector("state"), pt.matrix("weights")
    return framework.op_from_graph([state, weights], [pt.tanh(pt.dot(weights, state)) + 0.5 * state])


def layers(count: int) -> Callable[[Framework], Graph]:
    """A chain of `count` equal layers."""

    def chain(framework: Framework) -> Graph:
        pt, op = framework.pt, layer(framework)
        state, weights = pt.vector("state"), pt.matrix("weights")
        out = state
        for _ in range(count):
            out = op(out, weights)
        value = pt.sum(pt.sqr(out))
        return [state, weights], [value, *framework.grad(value, [state, weights])]

    return chain


def layers_in_scan(framework: Framework) -> Graph:
    """The same layer, 50 times in a loop."""
    pt, op = framework.pt, layer(framework)
    state, weights = pt.vector("state"), pt.matrix("weights")
    states, _ = framework.scan(op, outputs_info=[state], non_sequences=[weights], n_steps=values.STEPS)
    value = pt.sum(pt.sqr(states[-1]))
    return [state, weights], [value, *framework.grad(value, [state, weights])]


def minimize(framework: Framework) -> Graph:
    """The minimum of Rosenbrock's function of four variables, and how it moves with both parameters."""
    pt = framework.pt
    start, a, b = pt.vector("start", shape=(4,)), pt.scalar("a"), pt.scalar("b")
    cost = pt.sum(b * pt.sqr(start[1:] - pt.sqr(start[:-1])) + pt.sqr(a - start[:-1]))
    solution, _ = framework.minimize(cost, start, method="BFGS")
    value = pt.sum(solution)
    return [start, a, b], [value, *framework.grad(value, [a, b])]


MODELS: dict[str, Callable[[Framework], Graph]] = {
    "regression": regression,
    "kalman": kalman,
    "recurrent": recurrent,
    "layers-50": layers(50),
    "layers-100": layers(100),
    "layers-in-scan": layers_in_scan,
    "minimize": minimize,
}
