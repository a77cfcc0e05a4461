"""The models in JAX, in float64. Its persistent compilation cache is in JAX_COMPILATION_CACHE_DIR,
without a lower limit on what is worth keeping.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import values

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

Array = Any


def build(name: str) -> Callable[[], Callable[..., Any]]:
    """Return a function that makes the model `name` ready; JAX compiles it at its first call."""
    target, by = MODELS[name]
    compiled = jax.jit(jax.value_and_grad(target, argnums=by))

    def call(*arguments: Array) -> list[Array]:
        value, gradients = jax.block_until_ready(compiled(*arguments))
        return [value, *gradients]

    return lambda: call


def regression(*parameters: Array) -> Array:
    """The demo's hierarchical regression."""
    panel = values.panel()
    population, spreads, noise, effects = parameters[:3], parameters[3:6], parameters[6], parameters[7:]
    intercept, value, capital = (
        (mean + jnp.exp(spread) * effect)[panel.firm]
        for mean, spread, effect in zip(population, spreads, effects, strict=True)
    )
    scaled = (panel.invest - intercept - value * panel.value - capital * panel.capital) * jnp.exp(-noise)
    normal = sum(jnp.sum(parameter**2) for parameter in (*population, *effects))
    prior = -0.5 * (normal + sum(jnp.exp(2.0 * s) for s in (*spreads, noise))) + sum(spreads) + noise
    return prior - 0.5 * jnp.sum(scaled**2) - panel.firm.size * noise


def kalman(theta: Array) -> Array:
    """The local level model of the Nile's flow."""
    noise, step = jnp.exp(theta[0]), jnp.exp(theta[1])
    years = jnp.asarray(values.flow())

    def year(state: tuple[Array, Array], flow: Array) -> tuple[tuple[Array, Array], Array]:
        level, variance = state
        surprise, total = flow - level, variance + noise
        gain = variance / total
        density = -0.5 * (np.log(2.0 * np.pi) + jnp.log(total) + surprise**2 / total)
        return (level + gain * surprise, variance * (1.0 - gain) + step), density

    _, densities = lax.scan(year, (years[0], noise + step), years[1:])
    return jnp.sum(densities)


def recurrent(inputs: Array, into: Array, over: Array, bias: Array) -> Array:
    """An Elman network."""

    def step(state: Array, row: Array) -> tuple[Array, None]:
        return jnp.tanh(row @ into + state @ over + bias), None

    state, _ = lax.scan(step, jnp.zeros(values.WIDTH), inputs)
    return jnp.sum(state**2)


@jax.jit
def layer(state: Array, weights: Array) -> Array:
    """One layer, as a function of its own."""
    return jnp.tanh(weights @ state) + 0.5 * state


def layers(count: int) -> Callable[..., Array]:
    """A chain of `count` equal layers."""

    def chain(state: Array, weights: Array) -> Array:
        for _ in range(count):
            state = layer(state, weights)
        return jnp.sum(state**2)

    return chain


def layers_in_scan(state: Array, weights: Array) -> Array:
    """The same layer, 50 times in a loop."""
    state, _ = lax.scan(lambda s, _: (layer(s, weights), None), state, length=values.STEPS)
    return jnp.sum(state**2)


def minimize(start: Array, a: Array, b: Array) -> Array:
    """The minimum of Rosenbrock's function of four variables, by the search that JAX has."""
    from jax.scipy.optimize import minimize as search

    def cost(x: Array, a: Array, b: Array) -> Array:
        return jnp.sum(b * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)

    return jnp.sum(search(cost, start, args=(a, b), method="BFGS").x)


MODELS: dict[str, tuple[Callable[..., Array], tuple[int, ...]]] = {
    "regression": (regression, tuple(range(10))),
    "kalman": (kalman, (0,)),
    "recurrent": (recurrent, (1, 2, 3)),
    "layers-50": (layers(50), (0, 1)),
    "layers-100": (layers(100), (0, 1)),
    "layers-in-scan": (layers_in_scan, (0, 1)),
    "minimize": (minimize, (1, 2)),
}
