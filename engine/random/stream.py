"""`RandomStream`: the draws of `engine.random`, each from a shared generator of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from engine.random.names import DRAWS
from engine.random.shared import shared_rng


class RandomStream:
    """Draws from shared generators that are made for them: `RandomStream(1).normal(size=3)`.

    Each draw gets a new generator, whose seed follows from `seed`, and a default update: every call of a
    function continues its numbers. `rng_ctor` makes a generator from a sequence of seeds. `namespace` is a
    module with other draws in its `__all__`.
    """

    def __init__(
        self,
        seed: int | None = None,
        namespace: ModuleType | None = None,
        rng_ctor: Callable[[Any], np.random.Generator] | None = None,
    ) -> None:
        self.default_instance_seed = seed
        self.state_updates: list[tuple[Any, Any]] = []
        self.gen_seedgen = np.random.SeedSequence(seed)
        self.rng_ctor = np.random.default_rng if rng_ctor is None else rng_ctor
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        namespace = vars(self).get("_namespace")
        names = DRAWS if namespace is None else namespace.__all__
        if name.startswith("__") or name not in names:
            raise AttributeError(f"No attribute {name}.")
        return partial(self.gen, _method(name) if namespace is None else getattr(namespace, name))

    def updates(self) -> list[tuple[Any, Any]]:
        """Return the generators of all draws so far, with the updates that advance them."""
        return list(self.state_updates)

    def seed(self, seed: int | None = None) -> None:
        """Give the generators of all draws so far new states, which follow from `seed` (None: the first
        one)."""
        self.gen_seedgen = np.random.SeedSequence(self.default_instance_seed if seed is None else seed)
        seeds = self.gen_seedgen.spawn(len(self.state_updates))
        for (rng, _), each in zip(self.state_updates, seeds, strict=True):
            rng.set_value(self.rng_ctor(each), borrow=True)

    def gen(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return `op(*args, **kwargs)` with a new shared generator; refuses (ValueError) an `rng` among
        them."""
        if "rng" in kwargs:
            raise ValueError("The `rng` option cannot be used with a variate in a `RandomStream`")
        (seed,) = self.gen_seedgen.spawn(1)
        rng = shared_rng(self.rng_ctor(seed), borrow=True)
        next_rng, draws = op(*args, **kwargs, rng=rng, return_next_rng=True)
        self.state_updates.append((rng, next_rng))
        rng.default_update = next_rng
        return draws


def _method(name: str) -> Callable[..., Any]:
    """Return the draw `name`, a method of generators."""

    def draw(*args: Any, rng: Any, return_next_rng: bool, **kwargs: Any) -> Any:
        return getattr(rng, name)(*args, **kwargs)

    return draw
