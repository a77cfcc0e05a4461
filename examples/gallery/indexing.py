"""Elements read and written: slices, masks, several arrays, and gradients through them."""

import numpy as np

import engine as pytensor
import engine.tensor as pt

x = pt.dmatrix("x")
i = pt.lvector("i")
values = np.arange(20.0).reshape(4, 5)

read = pytensor.function([x, i], [x[1:, ::2], x[i], x[i, i], x[:, i], x[-1], x[..., 0]])
parts = read(values, [0, 2, 2])

mask = x > 7
masked = pytensor.function([x], [x[mask], pt.where(mask, x, 0.0), mask.nonzero()[0]])(values)

written = x[1].set(0.0)
added = x[:, i].inc(10.0)
both = pytensor.function([x, i], [written, added])(values, [0, 0, 3])

by_function = pt.set_subtensor(x[0, :2], [100.0, 200.0])
more = pt.inc_subtensor(x[x < 3], 1.0)
changed = pytensor.function([x], [by_function, more])(values)

gathered = (x[i] ** 2).sum()
gradient = pytensor.function([x, i], pt.grad(gathered, x))(values, [0, 2, 2])

length = pt.lscalar("length")
symbolic = pytensor.function([x, length], x[:length, length:])(values, 2)
taken = pytensor.function([x, i], pt.take(x, i, axis=1))(values, [4, 0])
largest = pytensor.function([x], [x.argmax(axis=1), x.max(axis=0), pt.argsort(-x, axis=1)])(values)
diagonal = pytensor.function([x], [pt.diagonal(x), pt.tril(x), pt.diag(x[0])])(values)
