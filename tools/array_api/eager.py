"""Eager functions: each call is a graph of engine.tensor, which is compiled and run at once.

A graph is built once for all arguments of the same dtypes, ranks and axes of length 1 whose other arguments
are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from engine.graph.variables import Variable

Builder = Callable[..., Any]

BY_LENGTH = ("unstack",)
"""Functions whose number of results depends on the lengths of their arrays: a graph for each length."""


class EagerNamespace:
    """Functions on numpy arrays, made of `builders`, which are functions on symbolic tensors, by their names.

    Arrays may be arguments, or items of lists and tuples that are. Every other argument is a constant of the
    graph. A function returns an array, or a (named) tuple of arrays; what is no tensor it returns as it is.
    `mode` is that of `engine.function`.
    """

    def __init__(self, builders: Mapping[str, Builder], mode: str = "NUMPY") -> None:
        self.builders = builders
        self.mode = mode
        self._calls: dict[Any, Callable[[list[Any]], Any]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self.builders:
            raise AttributeError(f"the namespace has no function {name!r}")
        return partial(self.call, name)

    def call(self, name: str, /, *args: Any, **options: Any) -> Any:
        """Return what the function `name` returns for these arguments."""
        arrays: list[Any] = []
        signature = _signature((args, tuple(sorted(options.items()))), arrays)
        lengths = tuple([array.shape for array in arrays]) if name in BY_LENGTH else ()
        key = (name, signature, lengths)
        if key not in self._calls:
            self._calls[key] = self._compiled(name, args, options)
        return self._calls[key](arrays)

    def _compiled(self, name: str, args: Any, options: Any) -> Callable[[list[Any]], Any]:
        inputs: list[Any] = []
        is_fixed = name in BY_LENGTH
        given = _symbolic(args, inputs, is_fixed)
        named = {key: _symbolic(options[key], inputs, is_fixed) for key in sorted(options)}
        built = self.builders[name](*given, **named)
        if not isinstance(built, Variable | tuple) or (isinstance(built, tuple) and not _has_tensors(built)):
            return lambda arrays: built
        outputs = [pt.as_tensor(each) for each in built] if isinstance(built, tuple) else built
        function = engine.function(inputs, outputs, self.mode, on_unused_input="ignore")
        if not isinstance(built, tuple):
            return lambda arrays: function(*arrays)
        made = getattr(type(built), "_make", tuple)
        return lambda arrays: made(function(*arrays))


def _has_tensors(built: tuple[Any, ...]) -> bool:
    return not built or any(isinstance(each, Variable) for each in built)


def _signature(value: Any, arrays: list[Any]) -> Any:
    """Return what a graph depends on in `value`; its arrays are appended to `arrays`."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return value.dtype, tuple([length == 1 for length in value.shape])
    if isinstance(value, tuple | list):
        return type(value), tuple([_signature(each, arrays) for each in value])
    return type(value), repr(value)


def _symbolic(value: Any, inputs: list[Any], is_fixed: bool) -> Any:
    """Return `value` with a new variable for each array, appended to `inputs`, of its shape if `is_fixed`."""
    if isinstance(value, np.ndarray):
        shape = [length if is_fixed or length == 1 else None for length in value.shape]
        inputs.append(pt.tensor(None, value.dtype.name, shape))
        return inputs[-1]
    if isinstance(value, tuple | list):
        return type(value)([_symbolic(each, inputs, is_fixed) for each in value])
    return value
