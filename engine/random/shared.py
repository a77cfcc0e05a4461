"""Generators of random numbers as shared variables: their states persist between calls, and updates change
them.

A function reads the state of the generator in the container, and leaves the new state there, a vector: it
never draws from a generator that the caller gave or holds. Whoever asks for the value gets a generator in
that state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.random.type import RandomGeneratorType, RandomGeneratorVariable, random_generator_type
from engine.shared_variables import Container, SharedVariable

UNSET = object()
"""In place of a seed: none was given, not even None, which asks for one of the system's."""


class GeneratorContainer(Container):
    """The value of a shared variable: in `storage[0]` a generator, or the state that a function left."""

    __slots__ = ()

    @property
    def data(self) -> np.random.Generator:
        """The generator, from now on the one in the storage."""
        found = self.storage[0]
        if not isinstance(found, np.random.Generator):
            generator = random_generator_type.from_array(found)
            if self.storage[0] is found:  # no other thread's call was faster
                self.storage[0] = generator
            return generator
        return found


class RandomGeneratorSharedVariable(RandomGeneratorVariable, SharedVariable):
    """A shared variable whose value is a generator of random numbers."""

    __slots__ = ("_default_update", "container")

    def __init__(
        self,
        type: RandomGeneratorType,
        value: Any,
        name: str | None = None,
        container: Container | None = None,
    ) -> None:
        super().__init__(type, None, None, name)
        self._default_update: Any = None
        self.container: Container = container or GeneratorContainer(type, [value])

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.random.Generator:
        """Return a generator in the state of the value, or, with `borrow`, the value itself: whoever draws
        from it changes the value."""
        generator: np.random.Generator = self.container.data
        return generator if borrow else random_generator_type.copy(generator)

    def set_value(self, new_value: Any = None, *, seed: Any = UNSET, borrow: bool = False) -> None:
        """Set the value: to a copy of the generator `new_value`, with `borrow` to itself, or to a new one
        from `seed`.

        Refuses (ValueError) both and neither, and (TypeError) what is no generator.
        """
        self.container.storage[0] = _generator("Setting a generator", "new_value", new_value, seed, borrow)

    def clone(self, name: str | None = None) -> RandomGeneratorSharedVariable:
        """Return a shared variable on the same container."""
        copy = RandomGeneratorSharedVariable(
            random_generator_type, None, name or self.name, container=self.container
        )
        copy._default_update = self._default_update
        return copy

    def __str__(self) -> str:
        return self.name or f"RNG({self.container.data})"

    __repr__ = __str__


def shared_rng(
    value: Any = None, *, seed: Any = UNSET, name: str | None = None, borrow: bool = False
) -> RandomGeneratorSharedVariable:
    """Return a shared variable that holds a copy of the generator `value`, with `borrow` the generator
    itself, or a new one from `seed`.

    Refuses (ValueError) both and neither, and (TypeError) what is no generator on a bit generator of
    numpy's.
    """
    generator = _generator("Sharing a generator", "value", value, seed, borrow)
    return RandomGeneratorSharedVariable(random_generator_type, generator, name)


def _generator(doing: str, argument: str, value: Any, seed: Any, borrow: bool) -> np.random.Generator:
    if value is None:
        if seed is UNSET:
            raise ValueError(f"{doing}: Must set one of value or seed")
        return np.random.default_rng(_own(seed, borrow))
    if seed is not UNSET:
        raise ValueError(f"{doing}: Cannot specify both {argument} and seed")
    if not isinstance(value, np.random.Generator):
        raise TypeError(f"{doing}: Expected numpy.random.Generator, got {type(value)}")
    copy = random_generator_type.copy(value)  # which refuses a generator that programs cannot hold
    return value if borrow else copy


def _own(seed: Any, borrow: bool) -> Any:
    """Return `seed`, custom_rng_deepcopy unless it is borrowed: a generator or a sequence of seeds is
    changed by its use."""
    from copy import deepcopy

    return seed if borrow else deepcopy(seed)
