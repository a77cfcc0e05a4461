"""Recurrences by `scan`: earlier results by taps, a state with a matrix, two results at once, reverse."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.scan import views

n = pt.iscalar("n")
first_two = pt.dvector("first_two")
fibonacci = pytensor.scan(
    fn=lambda two_ago, one_ago: two_ago + one_ago,
    outputs_info=[{"initial": first_two, "taps": [-2, -1]}],
    n_steps=n,
    return_updates=False,
)
numbers = pytensor.function([first_two, n], fibonacci)([1.0, 1.0], 12)

X = pt.dmatrix("X")
W = pt.dmatrix("W")
U = pt.dmatrix("U")
bias = pt.dvector("bias")
states = pytensor.scan(
    lambda x, state: pt.tanh(pt.dot(state, W) + pt.dot(x, U) + bias),
    sequences=X,
    outputs_info=pt.zeros_like(bias),
    return_updates=False,
)
network = pytensor.function([X, W, U, bias], states)
gradient = pytensor.function([X, W, U, bias], pt.grad(pt.sum(states**2), W))
rng = np.random.default_rng(3)
values = [rng.normal(size=shape) for shape in ((6, 3), (4, 4), (3, 4), (4,))]
trace = network(*values)
gradient_of_trace = gradient(*values)

v = pt.dvector("v")
sums, products = pytensor.scan(
    lambda x, total, product: (total + x, product * x),
    sequences=v,
    outputs_info=[pt.constant(0.0, dtype="float64"), pt.constant(1.0, dtype="float64")],
    return_updates=False,
)
running = pytensor.function([v], [sums, products])([1.0, 2.0, 3.0, 4.0])

backwards = pytensor.scan(
    lambda x, later: 0.5 * later + x,
    sequences=v,
    outputs_info=pt.constant(0.0, dtype="float64"),
    go_backwards=True,
    return_updates=False,
)
discounted = pytensor.function([v], backwards)([1.0, 2.0, 3.0])

differences = pytensor.scan(
    lambda before, now, after: after - 2 * now + before,
    sequences={"input": v, "taps": [-1, 0, 1]},
    return_updates=False,
)
second_differences = pytensor.function([v], differences)([1.0, 4.0, 9.0, 16.0, 27.0])

total = views.reduce(
    lambda x, so_far: x * x + so_far, v, outputs_info=pt.constant(0.0, dtype="float64"), return_updates=False
)
squares = views.map(lambda x: x**2, v, return_updates=False)
of_map = pytensor.function([v], [total, squares])([1.0, 2.0, 3.0])
