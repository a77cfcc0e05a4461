"""A program with the public types, which mypy checks strictly where the wheel is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_type

import cachegraph
import engine
import engine.tensor as pt

cache = cachegraph.Cache(namespace="typed")
found = cache.get_or_build({"a": 1}, build=lambda: b"content", load=len)
assert_type(found.value, int)
assert_type(found.outcome, Literal["hit", "miss", "bypass"])


@cachegraph.memoize
def squares(limit: int) -> list[int]:
    """Return the squares below a limit."""
    return [n * n for n in range(limit)]


class Scale:
    """A factor; its method is memoized, too."""

    def __init__(self, by: int) -> None:
        self.by = by

    @cachegraph.memoize
    def of(self, x: int) -> list[int]:
        """Return the multiple in a list."""
        return [self.by * x]


assert_type(squares(3), list[int])
assert_type(Scale(2).of(3), list[int])
method: Callable[[int], list[int]] = Scale(2).of

x = pt.vector("x")
mean = pt.scalar("mean")
cost = pt.sum(pt.sqr(x - mean)) + pt.log1p(pt.exp(mean)) + pt.dot(x, x)
f = engine.function([x, mean], [cost, engine.grad(cost, mean)])
assert_type(f, engine.Function)
assert_type(f.cache_info.outcome, str)
assert_type(x, pt.TensorVariable)
assert_type(pt.exp(x), pt.TensorVariable)
assert_type(1 + x * 2, pt.TensorVariable)
assert_type(x[1:].set(0).sum(), pt.TensorVariable)
assert_type(pt.linalg.inv(pt.dmatrix("A")).T, pt.TensorVariable)
assert_type(pt.special.softmax(pt.concatenate([x, x])), pt.TensorVariable)
assert_type(engine.grad(cost, mean), pt.TensorVariable)
assert_type(engine.grad(cost, [mean, x]), list[pt.TensorVariable])
engine.shared(1.0).set_value(2.0)
