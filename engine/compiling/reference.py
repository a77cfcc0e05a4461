"""Compiled functions made of references: of what the cache has, without their graphs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from cachegraph.caching.carried import CarriedEntries
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from engine.compiling.compiled import FunctionReference
from engine.compiling.executable import ArgumentConverter, Function
from engine.compiling.interface import Interface
from engine.compiling.pickled_function import PickledProgram, origin


class InputType:
    """The tensor type of an input, made when an argument must be converted: most arguments fit."""

    def __init__(self, dtype: str, shape: tuple[int | None, ...]) -> None:
        self.dtype = dtype
        self.shape = shape

    @cached_property
    def tensor_type(self) -> Any:
        """The type."""
        from engine.tensor.type import tensor_type

        return tensor_type(self.dtype, self.shape)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of its values."""
        return np.dtype(self.dtype)

    def filter(self, value: Any) -> np.ndarray[Any, Any]:
        """Return `value` as an array of this type; raises TypeError for what cannot be converted."""
        converted: np.ndarray[Any, Any] = self.tensor_type.filter(value)
        return converted

    def __str__(self) -> str:
        return str(self.tensor_type)


class Input(NamedTuple):
    """An input of a function that is made of a reference: it has no value of its own."""

    name: str | None
    type: Any
    container: None = None


def load_function_of(reference: FunctionReference, name: str) -> Function:
    """Return the function that `reference` refers to; it returns a list.

    Raises FunctionLoadError if the cache lacks a part of it.
    """
    inputs = [Input(label, InputType(dtype, shape)) for label, dtype, shape in reference.inputs]
    convert = ArgumentConverter(name, inputs, len(inputs))
    interface = Interface(tuple(item.type for item in inputs), reference.n_outputs, (), convert)
    key = CacheKey("function", (), reference.digest, reference.confirmation)
    program = PickledProgram(name, interface, key, "", origin(), reference.data, CarriedEntries(), {})
    return Function(program.load(), inputs, (), name, returns_list=True)
