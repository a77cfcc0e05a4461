"""Two ways to choose: `switch` takes elements from both branches, `ifelse` runs one of them."""

import numpy as np

import engine as pytensor
import engine.tensor as pt
from engine.conditional.op import ifelse

a, b = pt.dscalars("a", "b")
x, y = pt.dmatrices("x", "y")

elementwise = pt.switch(pt.lt(a, b), pt.mean(x), pt.mean(y))
lazy = ifelse(pt.lt(a, b), pt.mean(x), pt.mean(y))

f_switch = pytensor.function([a, b, x, y], elementwise)
f_lazy = pytensor.function([a, b, x, y], lazy)

ones = np.ones((50, 40))
twos = 2 * np.ones((50, 40))
first = f_switch(0.0, 1.0, ones, twos), f_lazy(0.0, 1.0, ones, twos)
second = f_switch(1.0, 0.0, ones, twos), f_lazy(1.0, 0.0, ones, twos)

v = pt.dvector("v")
clipped = pytensor.function([v], pt.switch(v > 0, pt.sqrt(pt.maximum(v, 0)), 0.0))
roots = clipped([-1.0, 0.0, 4.0])

either = ifelse(a > b, [a * 2, b], [a, b * 2])
several = pytensor.function([a, b], either)
doubled_first = several(3.0, 1.0)
doubled_second = several(1.0, 3.0)
