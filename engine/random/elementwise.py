"""Draws by numpy's distributions of single numbers, whose parameters and size broadcast."""

from __future__ import annotations

from typing import Any

from engine.random.op import RandomVariable


class ElementwiseRandomVariable(RandomVariable):
    """A draw by the method of numpy's Generator of the same name, element by element of the parameters.

    numpy draws the same numbers for parameters of one element as for numbers, but takes up to twice the time.
    """

    def rng_fn(self, *args: Any, **kwargs: Any) -> Any:
        rng, *params = args
        size = kwargs["size"] if "size" in kwargs else params.pop()
        if size is not None and all(param.size == 1 for param in params):
            params = [param.reshape(()) for param in params]
        return getattr(rng, self.name)(*params, size)
