"""Roots of equations, and how they move with the parameters."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.tensor.optimize import root

variables = pt.tensor("variables", shape=(2,), dtype="float64")
x, y = variables
a, b = pt.dscalars("a", "b")
equations = pt.stack([a * x**2 - y - 1, x - b * y**2 + 1])

solution, success = root(
    equations=equations, variables=variables, method="hybr", optimizer_kwargs={"tol": 1e-10}
)
solve = pytensor.function([variables, a, b], [solution, success])
from_zero, zero_success = solve(np.array([0.0, 0.0]), 1.0, 1.0)
from_one, one_success = solve(np.array([1.0, 1.0]), 1.0, 1.0)
residual = np.abs([from_one[0] ** 2 - from_one[1] - 1, from_one[0] - from_one[1] ** 2 + 1]).max() < 1e-8
found_zero = np.round(from_zero, 8)
found_one = np.round(from_one, 8)

slopes = pytensor.function([variables, a, b], pt.grad(solution[0], [a, b]))
how_it_moves = np.round(slopes(np.array([1.0, 1.0]), 1.0, 1.0), 6)
del from_zero, from_one
