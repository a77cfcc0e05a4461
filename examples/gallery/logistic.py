"""The logistic function of a matrix, in two forms, and several results of one function."""

import engine as pytensor
import engine.tensor as pt

x = pt.dmatrix("x")
by_exponential = 1 / (1 + pt.exp(-x))
by_tangent = (1 + pt.tanh(x / 2)) / 2

logistic = pytensor.function([x], by_exponential)
logistic2 = pytensor.function([x], by_tangent)

values = logistic([[0, 1], [-1, -2]])
same_values = logistic2([[0, 1], [-1, -2]])
far_out = logistic([[-800.0, 800.0]])

a, b = pt.dmatrices("a", "b")
difference = a - b
distance = abs(difference)
squared = difference**2
compare = pytensor.function([a, b], [difference, distance, squared])

differences, distances, squares = compare([[1, 1], [1, 1]], [[0, 1], [2, 3]])
