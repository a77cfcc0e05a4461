"""Types whose values are no arrays, such as generators of random numbers: a program holds an array for each.

Only arrays are bound, passed to callbacks and stored. A value that is none becomes an array where a function
or a callback begins, and a value again where it ends.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from engine.graph.types import Type
from engine.graph.variables import Constant, Variable


class RepresentedConstant(Constant):
    """A constant whose `value` is no array; `data` is the array that programs hold for it; None for None."""

    __slots__ = ()

    @property
    def value(self) -> Any:
        """The constant's value, a new object each time."""
        return self.type.from_array(self.data)

    def __str__(self) -> str:
        return self.name if self.name is not None else f"{self.value}"

    __repr__ = __str__


class RepresentedType(Type):
    """A set of values that are no arrays. Programs hold each as an array of `dtype` and `ndim` axes.

    Stored programs name the type by its `stored_name` (runtime/callbacks.py).
    """

    __props__ = ()
    constant_type: ClassVar[type[Constant]] = RepresentedConstant
    dtype: ClassVar[str]
    shape: ClassVar[tuple[int | None, ...]]
    stored_name: ClassVar[str]

    @property
    def ndim(self) -> int:
        """The number of axes of the arrays."""
        return len(self.shape)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of the arrays."""
        return np.dtype(self.dtype)

    def to_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Return the array for `value`: new, C-contiguous, equal for equal values; refuse (TypeError)
        others."""
        raise NotImplementedError(f"{type(self).__name__} must implement to_array()")

    def from_array(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a new object, the value that `array` stands for; refuse (TypeError) other arrays."""
        raise NotImplementedError(f"{type(self).__name__} must implement from_array()")

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        return self.constant_type(self, self.to_array(self.filter(value)), name)

    def data_key(self, value: Any) -> tuple[Any, ...]:
        return (self._bytes(value),)

    def same_data(self, first: Any, second: Any) -> bool:
        return self._bytes(first) == self._bytes(second)

    def is_array(self, value: Any) -> bool:
        """Return True if `value` is the array for a value, and not a value."""
        return isinstance(value, np.ndarray)

    def held(self, value: Any) -> np.ndarray[Any, Any]:
        """Return the array for `value`, which may be that array already."""
        array: np.ndarray[Any, Any] = value if self.is_array(value) else self.to_array(value)
        return array

    def _bytes(self, value: Any) -> bytes:
        """Return the bytes of an array, or of the array for a value: users make such constants."""
        return self.held(value).tobytes()


def array_of_constant(constant: Constant) -> Any:
    """Return the array that programs hold for `constant`, whose `data` may be its value itself."""
    type = constant.type
    return type.held(constant.data) if isinstance(type, RepresentedType) else constant.data


def array_of(variable: Variable, value: Any) -> Any:
    """Return the array that programs hold for `value`, one of `variable`."""
    return variable.type.to_array(value) if isinstance(variable.type, RepresentedType) else value


def value_of(variable: Variable, array: Any) -> Any:
    """Return the value of `variable` that `array` stands for in a program."""
    return variable.type.from_array(array) if isinstance(variable.type, RepresentedType) else array
