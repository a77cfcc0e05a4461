"""Random variables: streams with seeds, generators as shared variables, the same draws twice."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.tensor.random.utils import RandomStream

stream = RandomStream(seed=234)
uniform = stream.uniform(0, 1, size=(2, 2))
normal = stream.normal(0, 1, size=(2, 2))
f = pytensor.function([], uniform)
g = pytensor.function([], normal)
first, second = f(), f()
of_normal = g()

rng = pytensor.shared(np.random.default_rng(123), name="rng")
next_rng, x = pt.random.normal(loc=1.0, scale=2.0, size=3, rng=rng).owner.outputs
same = pytensor.function([], x)
repeated = same(), same()
moving = pytensor.function([], x, updates={rng: next_rng})
moved = moving(), moving()

rng.set_value(np.random.default_rng(123))
from_the_start = moving()
probabilities = pt.dvector("probabilities")
kind = pt.random.categorical(probabilities, size=10, rng=rng)
kinds = pytensor.function([probabilities], kind)([0.2, 0.3, 0.5])
