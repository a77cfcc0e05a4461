"""`RandomGeneratorType`: numpy's generators of random numbers as values of a graph."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from engine.graph.represented import RepresentedConstant, RepresentedType
from engine.graph.variables import Variable
from engine.random.names import DRAWS
from engine.random.states import BIT_GENERATORS, custom_rng_deepcopy, generator_of, vector_of
from engine.tensor.variable import TensorVariable


class RandomGeneratorVariable(Variable):
    """A generator in a graph. Its methods are the draws of `engine.random`, and return the next generator,
    too: `next_rng, x = rng.normal()`."""

    __slots__ = ()
    eval = TensorVariable.eval
    dprint = TensorVariable.dprint

    def __getattr__(self, name: str) -> Any:
        if name not in DRAWS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        draw = getattr(import_module("engine.random"), name)

        def method(*args: Any, **kwargs: Any) -> Any:
            self._warn_of_reuse()
            return draw(*args, rng=self, return_next_rng=True, **kwargs)

        method.__name__, method.__doc__ = name, draw.__doc__
        return method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *DRAWS})

    def _warn_of_reuse(self) -> None:
        if getattr(self.tag, "used", False):
            import warnings

            warnings.warn(
                f"Drawing from {self}: it has been drawn from before, and gives the same numbers again; "
                "draw from the generator that the first draw returned",
                UserWarning,
                stacklevel=3,
            )
        if isinstance(self.tag, SimpleNamespace):  # that of a frozen variable is none
            self.tag.used = True


class RandomGeneratorConstant(RandomGeneratorVariable, RepresentedConstant):
    """A generator known when the graph is built: each use begins in the same state."""

    __slots__ = ()


class RandomType(RepresentedType):
    """A set of generators of random numbers."""


class RandomGeneratorType(RandomType):
    """The instances of `numpy.random.Generator` on numpy's own bit generators.

    Programs hold their states (states.py). A draw from a generator gives a generator in the next state, and
    leaves the first as it was.
    """

    variable_type = RandomGeneratorVariable
    constant_type = RandomGeneratorConstant
    dtype = "uint64"
    shape = (None,)
    stored_name = "generator"

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return `value` if it is a generator; unless `strict`, make one of the `state` of a bit generator.

        Raises TypeError for anything else.
        """
        if isinstance(value, np.random.Generator):
            return value
        if not strict and isinstance(value, dict):
            return _of_state(value)
        raise TypeError(f"Using {value!r} ({type(value).__name__}) where a numpy.random.Generator is due")

    def is_valid_value(self, value: Any, strict: bool = True) -> bool:
        """Return True if `value` is a generator or, unless `strict`, the `state` of a bit generator."""
        try:
            self.filter(value, strict)
        except TypeError:
            return False
        return True

    def filter_variable(self, variable: Any, allow_convert: bool = True) -> Variable:
        """Return `variable`, or a constant of a generator; refuse (TypeError) anything else."""
        if isinstance(variable, np.random.Generator):
            return self.make_constant(variable)
        return super().filter_variable(variable, allow_convert)

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Return the state of a generator as a vector."""
        return vector_of(value)

    def from_array(self, array: np.ndarray[Any, Any]) -> np.random.Generator:
        """Return a new generator in the state `array`."""
        return generator_of(array)

    def copy(self, value: np.random.Generator) -> np.random.Generator:
        """Return a generator in the same state that shares nothing with `value`."""
        return custom_rng_deepcopy(value)

    @staticmethod
    def values_eq(a: Any, b: Any) -> bool:
        """Return True if two generators, or two states of bit generators, are in the same state."""
        states = [each if isinstance(each, dict) else each.bit_generator.state for each in (a, b)]
        return _is_same(*states)

    @staticmethod
    def may_share_memory(a: np.random.Generator, b: np.random.Generator) -> bool:
        """Return True if two generators draw from one bit generator."""
        return a.bit_generator is b.bit_generator

    def __repr__(self) -> str:
        return type(self).__name__

    __str__ = __repr__


random_generator_type = RandomGeneratorType()


def rng(name: str | None = None) -> Variable:
    """Return a generator without a value, as an input of a function."""
    return random_generator_type(name)


def _of_state(state: dict[Any, Any]) -> np.random.Generator:
    kinds = {kind.__name__: kind for kind in BIT_GENERATORS}
    kind: Any = kinds.get(str(state.get("bit_generator")))
    if kind is None:
        raise TypeError(
            "Using a dictionary as a generator: it is not the state of a bit generator of numpy's"
        )
    bits = kind(0)
    try:
        bits.state = state
    except (KeyError, ValueError) as error:
        raise TypeError(f"Using a dictionary as the state of a {kind.__name__}: {error!r}") from error
    return np.random.Generator(bits)


def _is_same(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_is_same(first[key], second[key]) for key in first)
    return bool(np.array_equal(first, second))


def as_rng(value: Any) -> Variable:
    """Return `value` if it is a generator in a graph; raises TypeError for anything else."""
    if isinstance(value, Variable) and isinstance(value.type, RandomType):
        return value
    raise TypeError(
        f"Drawing from {value!r} ({type(value).__name__}): give a variable, pt.random.shared_rng(...) or "
        "pt.random.rng()"
    )
