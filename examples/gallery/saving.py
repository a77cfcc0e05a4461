"""Functions and shared variables kept in pickles."""

import copy
import pickle

import numpy as np

import engine as pytensor
import engine.tensor as pt

x = pt.dvector("x")
weights = pytensor.shared(np.array([1.0, 2.0]), name="weights")
learn = pytensor.function([x], (weights * x).sum(), updates=[(weights, weights + x)])
first = learn([1.0, 1.0])

loaded = pickle.loads(pickle.dumps(learn))
again = loaded([1.0, 1.0])
untouched = weights.get_value()

twin = copy.copy(learn)
of_twin = twin([2.0, 0.0])
shared_copy = pickle.loads(pickle.dumps(weights))
shared_copy.set_value(np.array([7.0, 7.0]))
still = weights.get_value()
