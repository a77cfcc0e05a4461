"""Loops by `scan`: a power, a polynomial, a table filled by position."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

k = pt.iscalar("k")
a = pt.dvector("a")
result, updates = pytensor.scan(
    fn=lambda prior, a: prior * a, outputs_info=pt.ones_like(a), non_sequences=a, n_steps=k
)
power = pytensor.function(inputs=[a, k], outputs=result[-1], updates=updates)
squares = power(range(10), 2)
fourths = power(range(10), 4)

coefficients = pt.dvector("coefficients")
x = pt.dscalar("x")
terms, _ = pytensor.scan(
    fn=lambda coefficient, exponent, x: coefficient * (x**exponent),
    outputs_info=None,
    sequences=[coefficients, pt.arange(100)],
    non_sequences=x,
)
polynomial = pytensor.function(inputs=[coefficients, x], outputs=terms.sum())
value = polynomial(np.asarray([1.0, 0.0, 2.0]), 3)
slope = pytensor.function([coefficients, x], pt.grad(terms.sum(), x))([1.0, 0.0, 2.0], 3)

locations = pt.imatrix("locations")
numbers = pt.dvector("numbers")
shape_like = pt.dmatrix("shape_like")


def with_one(location, number, model):
    zeros = pt.zeros_like(model)
    return pt.set_subtensor(zeros[location[0], location[1]], number)


tables, _ = pytensor.scan(
    fn=with_one, outputs_info=None, sequences=[locations, numbers], non_sequences=shape_like
)
fill = pytensor.function(inputs=[locations, numbers, shape_like], outputs=tables)
filled = fill(np.asarray([[1, 1], [2, 3]], dtype="int32"), [42.0, 50.0], np.zeros((5, 5)))
