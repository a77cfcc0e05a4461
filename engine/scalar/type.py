"""`ScalarType`: one number of a dtype. Inner graphs of elementwise loops have such variables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from cachegraph.pickling.rebuilding import rebuilds_pickled
from engine.configdefaults import config
from engine.graph.types import Type
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import DTYPES, ROUNDED

operations: Any = None
"""The package `engine.scalar`, set when it is imported: its operations make variables, and so import this."""


def _operators(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Return the methods of a binary operator and of its reflection; `name` is the operation's name."""

    def operator(self: Any, other: Any) -> Any:
        return getattr(operations, name)(self, other)

    def reflected(self: Any, other: Any) -> Any:
        return getattr(operations, name)(other, self)

    return operator, reflected


class ScalarVariable(Variable):
    """A variable that holds one number. Operators are those of numbers; `==` compares identity."""

    __slots__ = ()
    type: ScalarType
    ndim = 0

    @property
    def dtype(self) -> str:
        """The dtype of the number."""
        return self.type.dtype

    @property
    def shape(self) -> Any:
        """The shape of the number as a tensor has it: no lengths."""
        return import_module("engine.tensor").constant(np.empty(0, "int64"))

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("true_div")
    __floordiv__, __rfloordiv__ = _operators("floor_div")
    __mod__, __rmod__ = _operators("mod")
    __pow__, __rpow__ = _operators("pow")
    __and__, __rand__ = _operators("and_")
    __or__, __ror__ = _operators("or_")
    __xor__, __rxor__ = _operators("xor")
    __lt__ = _operators("lt")[0]
    __le__ = _operators("le")[0]
    __gt__ = _operators("gt")[0]
    __ge__ = _operators("ge")[0]

    def __neg__(self) -> Any:
        return operations.neg(self)

    def __abs__(self) -> Any:
        return operations.abs(self)

    def __invert__(self) -> Any:
        return operations.invert(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(f"Taking the truth of {self}: a variable of a graph has no value yet")

    def astype(self, dtype: Any) -> Any:
        """Return the number cast to `dtype`."""
        return operations.cast(self, dtype)

    def zeros_like(self, dtype: Any = None) -> Any:
        """Return 0 of `dtype`, or of this dtype."""
        return operations.second(self, operations.constant(0, dtype=dtype or self.dtype))

    def ones_like(self, dtype: Any = None) -> Any:
        """Return 1 of `dtype`, or of this dtype."""
        return operations.second(self, operations.constant(1, dtype=dtype or self.dtype))


class ScalarConstant(ScalarVariable, Constant):
    """A number known when the graph is built; `data` is a numpy scalar of the type's dtype."""

    __slots__ = ()

    def __init__(self, type: ScalarType, data: Any, name: str | None = None) -> None:
        super().__init__(type, type.filter(data), name)


class ScalarType(Type):
    """The numbers of `dtype`: complex ones, floats, integers or bools (engine.scalar.promotion.DTYPES)."""

    __props__ = ("dtype",)
    variable_type = ScalarVariable
    constant_type = ScalarConstant
    ndim = 0
    shape = broadcastable = ()

    def __init__(self, dtype: Any) -> None:
        name = config.floatX if isinstance(dtype, str) and dtype == "floatX" else np.dtype(dtype).name
        if name not in DTYPES:
            raise TypeError(f"Making a ScalarType of dtype {dtype!r}: there are {', '.join(DTYPES)}")
        self.dtype = name
        self.numpy_dtype = np.dtype(name)

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return `value` as a numpy scalar of this dtype. Raises TypeError for a value that it does not
        hold exactly.

        A Python float may be rounded to float32; `allow_downcast` casts everything that numpy can cast.
        """
        if type(value) is self.numpy_dtype.type:
            return value
        if strict:
            raise TypeError(
                f"Using {value!r} as {self}: it is a {type(value).__name__}, not a numpy.{self.dtype}"
            )
        with np.errstate(all="ignore"):
            try:
                result = self.numpy_dtype.type(value)
            except (TypeError, ValueError, OverflowError) as error:
                raise TypeError(
                    f"Using {value!r} as {self}: it is no number of that dtype ({error})"
                ) from error
            exact = result == value or (result != result and value != value)
        python_float = type(value) is float and self.dtype in ROUNDED and allow_downcast is None
        if not (exact or allow_downcast or python_float):
            raise TypeError(f"Using {value!r} as {self}: the dtype does not hold it exactly; cast it first")
        return result

    def clone(self, dtype: Any = None) -> ScalarType:
        """Return this type, or that of another dtype."""
        return self if dtype is None else scalar_type(ScalarType(dtype).dtype)

    def data_key(self, value: Any) -> tuple[Any, ...]:
        return (value.tobytes(),)

    def same_data(self, first: Any, second: Any) -> bool:
        return first.tobytes() == second.tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return scalar_type, (self.dtype,)

    def __str__(self) -> str:
        return self.dtype

    def __repr__(self) -> str:
        return f"Scalar({self.dtype})"


@rebuilds_pickled
@cache
def scalar_type(dtype: str) -> ScalarType:
    """Return the ScalarType of `dtype`, always the same object."""
    return ScalarType(dtype)
