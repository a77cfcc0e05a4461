"""A minimum as a part of a graph, and its gradient by the parameters of the function minimized."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.tensor.optimize import minimize

x = pt.tensor("x", shape=(2,), dtype="float64")
a, b = pt.dscalars("a", "b")
rosenbrock = (a - x[0]) ** 2 + b * (x[1] - x[0] ** 2) ** 2

minimum, success = minimize(objective=rosenbrock, x=x, method="BFGS", optimizer_kwargs={"tol": 1e-10})
solve = pytensor.function([x, a, b], [minimum, success])
_point, succeeded = solve(np.array([-1.0, 1.0]), 1.5, 100.0)
point = np.round(_point, 5)

by_parameters = pt.grad(minimum.sum(), [a, b])
_slopes = pytensor.function([x, a, b], by_parameters)(np.array([-1.0, 1.0]), 1.5, 100.0)
slopes = np.round(_slopes, 3)
