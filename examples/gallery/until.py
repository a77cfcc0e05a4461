"""A loop that ends when it is near enough: powers up to a limit, a square root by Newton's method."""

import engine as pytensor
import engine.tensor as pt
from engine.scan import until

limit = pt.dscalar("limit")
values = pytensor.scan(
    lambda before, limit: (before * 2, until(before * 2 > limit)),
    outputs_info=pt.constant(1.0, dtype="float64"),
    non_sequences=limit,
    n_steps=1024,
    return_updates=False,
)
powers_of_two = pytensor.function([limit], values)(45)

square = pt.dscalar("square")


def improved(root, square):
    following = 0.5 * (root + square / root)
    return following, until(pt.abs(following - root) < 1e-12)


roots = pytensor.scan(improved, outputs_info=square, non_sequences=square, n_steps=100, return_updates=False)
newton = pytensor.function([square], [roots[-1], roots.shape[0]])
root, n_steps = newton(2.0)
large_root, n_large_steps = newton(1e10)
