"""Shared variables: variables whose values persist between calls and are changed by updates."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from engine.errors import MaskedArrayError
from engine.graph.generic import generic
from engine.graph.types import Type
from engine.graph.variables import Variable
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.type import TensorType, check_dtype, is_masked, tensor_type
from engine.tensor.variable import TensorVariable

if TYPE_CHECKING:
    from engine.random.shared import RandomGeneratorSharedVariable

_numbers = count()
"""The numbers of containers, in the order in which they are made."""


def newest_container() -> int:
    """Return a number that is larger than those of all containers so far, and smaller than those to come."""
    return next(_numbers)


class Container:
    """The value of a variable that persists between calls, in `storage[0]`: None before it has one.

    `r` is the variable, or its type. That of a shared variable is, if it is an array, C-contiguous, aligned,
    of exactly `type`. Raises TypeError unless `storage` is a list with an item.
    """

    __slots__ = ("number", "storage", "type")

    def __init__(self, r: Variable | Type, storage: list[Any]) -> None:
        if not isinstance(storage, list) or not storage:
            raise TypeError(
                f"Making a container: its storage is {storage!r}; it must be a list with the value"
            )
        self.number = next(_numbers)
        self.type: Any = r.type if isinstance(r, Variable) else r
        self.storage = storage

    @property
    def data(self) -> Any:
        """The value."""
        return self.storage[0]

    @property
    def value(self) -> Any:
        """The value. It is converted when it is set, as the type does (TypeError for others)."""
        return self.data

    @value.setter
    def value(self, value: Any) -> None:
        self.storage[0] = self.type.filter(value)

    def __getstate__(self) -> tuple[Type, Any]:
        return self.type, self.storage[0]

    def __setstate__(self, state: tuple[Type, Any]) -> None:
        # Who pickled it may have had the array mapped from a file, of which it may be read only (joblib
        # does so).
        type, value = state
        if isinstance(value, np.ndarray):
            value = np.require(value, requirements=("C", "A", "W", "E"))
        self.__init__(type, [value])  # type: ignore[misc]


class SharedVariable(Variable):
    """A variable with its value in `container`; clones and copies of the graph use the same container.

    Made of this class itself, it is a variable of any `type`; a tensor is a TensorSharedVariable.
    """

    __slots__ = ()

    def __new__(cls, type: Type, *arguments: Any, **options: Any) -> SharedVariable:
        if cls is SharedVariable:
            cls = TensorSharedVariable if isinstance(type, TensorType) else GenericSharedVariable
        new: SharedVariable = object.__new__(cls)
        return new

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.type,)

    _default_update: Any
    container: Container

    @property
    def default_update(self) -> Any:
        """The expression for the value after each call of a function that uses the variable without an
        update of its own.

        None if there is none. `no_default_updates` of `function` disables it. Refuses (TypeError) an
        expression of another type.
        """
        return self._default_update

    @default_update.setter
    def default_update(self, value: Any) -> None:
        self._default_update = None if value is None else as_update(self, value, "Setting a default update")

    def __getstate__(self) -> dict[str, Any]:
        return {
            **super().__getstate__(),
            "_default_update": self._default_update,
            "container": self.container,
        }


class GenericSharedVariable(SharedVariable):
    """A shared variable whose value is any object that its type takes."""

    __slots__ = ("_default_update", "container")

    def __init__(
        self,
        type: Type,
        value: Any,
        strict: bool = False,
        allow_downcast: bool | None = None,
        container: Container | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(type, None, None, name)
        self._default_update: Any = None
        found = None if container else type.filter(value, strict, allow_downcast)
        self.container: Container = container or Container(type, [found])

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """Return a copy of the value, or, with `borrow`, the value itself."""
        return self.container.data if borrow else deepcopy(self.container.data)

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Set the value: to a copy of `value`, or, with `borrow`, to itself. Refuses what the type does."""
        self.container.value = value if borrow else deepcopy(value)

    def clone(self, name: str | None = None) -> SharedVariable:
        """Return a shared variable on the same container."""
        copy = GenericSharedVariable(self.type, None, container=self.container, name=name or self.name)
        copy._default_update = self._default_update
        return copy


class TensorSharedVariable(TensorVariable, SharedVariable):
    """A shared variable whose value is an array."""

    __slots__ = ("_default_update", "allow_downcast", "container", "strict")

    def __init__(
        self,
        type: TensorType,
        value: Any,
        name: str | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        container: Container | None = None,
        borrow: bool = False,
    ) -> None:
        super().__init__(type, None, None, name)
        self.strict = strict
        self.allow_downcast = allow_downcast
        self._default_update: Any = None
        self.container: Container = container or Container(type, [self._filtered(value, borrow)])

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> np.ndarray:
        """Return a copy of the value, or, with `borrow`, the array that the variable uses."""
        array: np.ndarray = self.container.data
        return array if borrow else array.copy()

    def set_value(self, value: Any, borrow: bool = False) -> None:
        """Set the value: to a copy of `value`, or, with `borrow`, to the array itself if possible.

        Refuses (TypeError) a value that the type does not take: a dtype that could lose digits, another
        rank or length.
        """
        self.container.storage[0] = self._filtered(value, borrow)

    def zero(self, borrow: bool = False) -> None:
        """Set all elements to 0: of the array that the variable uses, with `borrow`, or of a new one."""
        if borrow:
            self.container.data[...] = 0
        else:
            self.container.storage[0] = np.zeros_like(self.container.data)

    def _filtered(self, value: Any, borrow: bool) -> np.ndarray:
        array = self.type.filter(value, strict=self.strict, allow_downcast=self.allow_downcast)
        return np.array(array, order="C", copy=None if borrow else True)

    def clone(self, name: str | None = None) -> TensorSharedVariable:
        """Return a shared variable on the same container."""
        copy = TensorSharedVariable(
            self.type, None, name or self.name, self.strict, self.allow_downcast, container=self.container
        )
        copy._default_update = self._default_update
        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "allow_downcast": self.allow_downcast, "strict": self.strict}


def as_update(variable: Variable, value: Any, doing: str) -> Variable:
    """Return `value` as the update of `variable`; refuses (TypeError) a value of another type. `doing`
    begins the message."""
    if isinstance(variable, GenericSharedVariable):
        raise TypeError(f"{doing}: {variable} is updated, whose values are no arrays; set_value sets them")
    try:
        given = as_tensor_variable(value) if isinstance(variable.type, TensorType) else value
        return variable.type.filter_variable(given)
    except TypeError as error:
        raise TypeError(
            f"{doing}: the update of {variable} must have its type {variable.type}; found {value!r} of type "
            f"{getattr(value, 'type', type(value).__name__)}; cast it first"
        ) from error


@overload
def shared(
    value: np.ndarray | np.generic | complex,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
) -> TensorSharedVariable: ...


@overload
def shared(
    value: np.random.Generator,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
) -> RandomGeneratorSharedVariable: ...


def shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    shape: Sequence[int | None] | None = None,
) -> Any:
    """Return a shared variable that holds `value`: an array, a numpy scalar, a Python number or a
    generator of random numbers.

    All lengths of a tensor may change later, and no axis broadcasts; `shape` fixes lengths. With `borrow`
    the value is not copied. Another object has the type `generic`; a masked array is refused
    (MaskedArrayError).
    """
    if _is_generator(value):
        return import_module("engine.random.shared").shared_rng(value, name=name, borrow=borrow)
    if isinstance(value, Variable):
        raise TypeError(f"Sharing {value}: it is a variable of a graph, a value is expected")
    if is_masked(value):
        raise MaskedArrayError("Sharing a masked array")
    if not isinstance(value, np.ndarray | np.generic | int | float | complex):
        return GenericSharedVariable(generic, value if borrow else deepcopy(value), strict, name=name)
    array = np.asarray(value)
    lengths = (None,) * array.ndim if shape is None else tuple(shape)
    tensor = tensor_type(check_dtype(array.dtype), lengths)
    return TensorSharedVariable(tensor, array, name, strict, allow_downcast, borrow=borrow)


def _is_generator(value: Any) -> bool:
    """Return True for a generator of numpy's; numpy.random is not imported for this."""
    return type(value).__module__.startswith("numpy.random")
