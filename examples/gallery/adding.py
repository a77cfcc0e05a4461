"""Numbers and matrices added, and an expression of two vectors."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

x = pt.dscalar("x")
y = pt.dscalar("y")
z = x + y
add = pytensor.function([x, y], z)

of_integers = add(2, 3)
of_floats = add(16.3, 12.1)
evaluated = z.eval({x: 16.3, y: 12.1})

left, right = pt.dmatrices("left", "right")
add_matrices = pytensor.function([left, right], left + right)

of_lists = add_matrices([[1, 2], [3, 4]], [[10, 20], [30, 40]])
of_arrays = add_matrices(np.array([[1, 2], [3, 4]]), np.array([[10, 20], [30, 40]]))

a = pt.vector("a")
b = pt.vector("b")
square_of_sum = pytensor.function([a, b], a**2 + b**2 + 2 * a * b)

squares = square_of_sum([1, 2], [4, 5])
