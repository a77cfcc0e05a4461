"""A graph made an Op, used twice, and once with a gradient of its own."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.compile.builders import OpFromGraph

x, y, z = pt.dscalars("x", "y", "z")
op = OpFromGraph([x, y, z], [x + y * z])
used_twice = op(x, y, z) + op(z, y, x)
value = pytensor.function([x, y, z], used_twice)(2.0, 3.0, 4.0)
slopes = pytensor.function([x, y, z], pt.grad(used_twice, [x, y, z]))(2.0, 3.0, 4.0)

v = pt.dvector("v")
softplus = OpFromGraph([v], [pt.log1p(pt.exp(v))])
of_vector = softplus(v)
both = pytensor.function([v], [of_vector, pt.grad(of_vector.sum(), v)])(np.array([-1.0, 0.0, 2.0]))


def straight_through(inputs, outputs, output_gradients):
    return [output_gradients[0]]


rounded = OpFromGraph([v], [pt.round(v)], pullback=straight_through)
gradient_of_rounded = pytensor.function([v], pt.grad((rounded(v) ** 2).sum(), v))([0.4, 1.6])
