"""Hierarchical regressions of investment on value and capital, as graphs.

Each firm has its own intercept and slopes, drawn around those of the population:

    invest[i] ~ noise around  a[firm[i]] + b[firm[i]] * value[i] + c[firm[i]] * capital[i]
    a = intercept + exp(log_spread_intercept) * z_intercept,    z_intercept ~ Normal(0, 1)    (b and c likewise)
    intercept, slopes ~ Normal(0, 1);    spreads and noise ~ HalfNormal(1), on the log scale

The noise is Normal in the model "normal", Student's t with 4 degrees of freedom in the model
"robust".
"""

from __future__ import annotations

from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from panel import Panel

Variable = Any
NORMAL_PRIOR = ("intercept", "slope_value", "slope_capital", "z_intercept", "z_value", "z_capital")
SPREADS = ("log_spread_intercept", "log_spread_value", "log_spread_capital", "log_noise")
DEGREES_OF_FREEDOM = 4.0


def parameter_shapes(firms: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter, in the order in which they are laid out in one vector."""
    scalars = (*NORMAL_PRIOR[:3], *SPREADS)
    return dict.fromkeys(scalars, ()) | dict.fromkeys(NORMAL_PRIOR[3:], (firms,))


def split(theta: np.ndarray, firms: int) -> list[np.ndarray]:
    """Return the parameters laid out in the vector `theta`, as views."""
    shapes = parameter_shapes(firms).values()
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [piece.reshape(shape) for piece, shape in zip(np.split(theta, ends[:-1]), shapes, strict=True)]


def build(name: str, panel: Panel) -> tuple[list[Variable], list[Variable]]:
    """Return the inputs (the parameters) and outputs (log density, its gradient by each) of the model
    `name`.
    """
    shapes = parameter_shapes(len(panel.firms))
    parameters = {name: pt.vector(name) if shape else pt.scalar(name) for name, shape in shapes.items()}
    residual = pt.as_tensor_variable(panel.invest) - predicted(parameters, panel)
    scaled = residual * pt.exp(-parameters["log_noise"])
    log_density = (
        log_prior(parameters) + LIKELIHOODS[name](scaled) - float(len(panel.firm)) * parameters["log_noise"]
    )
    inputs = list(parameters.values())
    return inputs, [log_density, *engine.grad(log_density, inputs)]


def predicted(parameters: dict[str, Variable], panel: Panel) -> Variable:
    """Return the expected investment of every row."""
    firm = pt.as_tensor_variable(panel.firm)

    def of_firm(population: str, effect: str) -> Variable:
        spread = pt.exp(parameters[f"log_spread_{effect}"])
        return (parameters[population] + spread * parameters[f"z_{effect}"])[firm]

    return (
        of_firm("intercept", "intercept")
        + of_firm("slope_value", "value") * pt.as_tensor_variable(panel.value)
        + of_firm("slope_capital", "capital") * pt.as_tensor_variable(panel.capital)
    )


def log_prior(parameters: dict[str, Variable]) -> Variable:
    """Return the log density of the priors, up to a constant."""
    normal = sum(pt.sum(pt.sqr(parameters[name])) for name in NORMAL_PRIOR)
    spreads = [parameters[name] for name in SPREADS]
    return -0.5 * (normal + sum(pt.exp(2.0 * s) for s in spreads)) + sum(spreads)


def normal_likelihood(scaled: Variable) -> Variable:
    """Return the log density of residuals in units of the noise, Normal."""
    return -0.5 * pt.sum(pt.sqr(scaled))


def robust_likelihood(scaled: Variable) -> Variable:
    """Return the log density of residuals in units of the noise, Student's t."""
    weight = -0.5 * (DEGREES_OF_FREEDOM + 1.0)
    return weight * pt.sum(pt.log1p(pt.sqr(scaled) / DEGREES_OF_FREEDOM))


LIKELIHOODS = {"normal": normal_likelihood, "robust": robust_likelihood}
