"""What is known of shapes before any number is there, and what is asserted about them."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

x = pt.dmatrix("x")
rows, columns = x.shape
mean = x.sum() / (rows * columns)
averages = pytensor.function([x], mean)(np.arange(6.0).reshape(2, 3))

joined = pt.join(0, x, x)
length = pytensor.function([x], joined.shape[0])(np.zeros((2, 3)))

known = pt.specify_shape(x, (2, None))
static = known.type.shape
checked = pytensor.function([x], known.sum())
of_two_rows = checked(np.ones((2, 5)))
refused = False
try:
    checked(np.ones((3, 5)))
except AssertionError:
    refused = True

flat = x.reshape((-1,))
lengths = pytensor.function([x], [flat.shape[0], x.size])(np.zeros((4, 5)))
tiled = pytensor.function([x], pt.tile(x, (2, 2)))([[1.0, 2.0]])
repeated = pytensor.function([x], pt.repeat(x, 2, axis=1))([[1.0, 2.0]])
stacked = pytensor.function([x], pt.stack([x, 2 * x], axis=1))([[1.0, 2.0], [3.0, 4.0]])
parts = pt.split(x, [1, 2], n_splits=2, axis=1)
cut = pytensor.function([x], parts)(np.arange(6.0).reshape(2, 3))
