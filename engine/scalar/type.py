"""`ScalarType`: one number of a dtype. Inner graphs of elementwise loops have such variables."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cachegraph.pickling.rebuilding import rebuilds_pickled
from engine.graph.types import Type
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import DTYPES


class ScalarVariable(Variable):
    """A variable that holds one number."""

    __slots__ = ()
    type: ScalarType

    @property
    def dtype(self) -> str:
        """The dtype of the number."""
        return self.type.dtype


class ScalarConstant(ScalarVariable, Constant):
    """A number known when the graph is built; `data` is a numpy scalar of the type's dtype."""

    __slots__ = ()


class ScalarType(Type):
    """The numbers of `dtype`: a float, an integer or a bool (engine.scalar.promotion.DTYPES)."""

    __props__ = ("dtype",)
    variable_type = ScalarVariable
    constant_type = ScalarConstant
    ndim = 0

    def __init__(self, dtype: str) -> None:
        if dtype not in DTYPES:
            raise TypeError(f"Making a ScalarType of dtype {dtype!r}: there are {', '.join(DTYPES)}")
        self.dtype = dtype
        self.numpy_dtype = np.dtype(dtype)

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
        python_float = type(value) is float and self.dtype == "float32" and allow_downcast is None
        if not (exact or allow_downcast or python_float):
            raise TypeError(f"Using {value!r} as {self}: the dtype does not hold it exactly; cast it first")
        return result

    def data_key(self, value: Any) -> tuple[Any, ...]:
        return (value.tobytes(),)

    def same_data(self, first: Any, second: Any) -> bool:
        return first.tobytes() == second.tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return scalar_type, (self.dtype,)

    def __str__(self) -> str:
        return f"Scalar({self.dtype})"


@rebuilds_pickled
@cache
def scalar_type(dtype: str) -> ScalarType:
    """Return the ScalarType of `dtype`, always the same object."""
    return ScalarType(dtype)
