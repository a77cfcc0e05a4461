"""Gradients, Jacobians, Hessians, and their products with vectors."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

x = pt.dscalar("x")
square = x**2
slope = pt.grad(square, x)
at_four = pytensor.function([x], slope)(4)

m = pt.dmatrix("m")
total = pt.sum(1 / (1 + pt.exp(-m)))
slopes = pytensor.function([m], pt.grad(total, m))([[0, 1], [-1, -2]])

v = pt.dvector("v")
jacobian = pytensor.function([v], pytensor.gradient.jacobian(v**2, v))([4, 4])

cost = (v**3).sum() + v[0] * v[1]
hessian = pytensor.function([v], pytensor.gradient.hessian(cost, v))([4, 5])

weights = pt.dmatrix("weights")
direction = pt.dmatrix("direction")
row = pt.dvector("row")
product = pt.dot(row, weights)
forward = pytensor.gradient.pushforward(product, weights, direction)
backward = pytensor.gradient.pullback(product, weights, row)

right_product = pytensor.function([weights, direction, row], forward, on_unused_input="ignore")
left_product = pytensor.function([weights, row], backward, on_unused_input="ignore")
forwards = right_product([[1, 1], [1, 1]], [[2, 2], [2, 2]], [0, 1])
backwards = left_product([[1, 1], [1, 1]], [0, 1])

p = pt.dvector("p")
along = pt.grad(pt.sum(pt.grad(cost, v) * p), v)
hessian_times_p = pytensor.function([v, p], along)([4, 5], np.array([2.0, 3.0]))

constant = pytensor.gradient.disconnected_grad(v[0])
without_constant = pytensor.function([v], pt.grad(constant * v.sum(), v))([2.0, 3.0])
