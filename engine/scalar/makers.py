"""Types, variables and constants that are one number, by dtype, under PyTensor's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph.several import several
from engine.scalar.conversion import Cast
from engine.scalar.op import apply_scalar_op, as_scalar
from engine.scalar.promotion import COMPLEX, DISCRETE, FLOATS, SIGNED, UNSIGNED
from engine.scalar.type import ScalarConstant, ScalarType, scalar_type

get_scalar_type = scalar_type


def _types(dtypes: tuple[str, ...]) -> tuple[ScalarType, ...]:
    return tuple([scalar_type(dtype) for dtype in dtypes])


int_types, uint_types = _types(SIGNED), _types(UNSIGNED)
float_types, complex_types = _types(FLOATS), _types(COMPLEX)
integer_types = int_types + uint_types
discrete_types = _types(DISCRETE)
continuous_types = float_types + complex_types
all_types = discrete_types + continuous_types
discrete_dtypes = DISCRETE

ints, floats = several(scalar_type("int64")), several(scalar_type("float64"))
complexs = complexs128 = several(scalar_type("complex128"))
complexs64 = several(scalar_type("complex64"))

convert_to = {type.dtype: Cast(type.dtype) for type in all_types}
"""The casts, by the dtype of their results."""


def constant(x: Any, name: str | None = None, dtype: Any = None) -> ScalarConstant:
    """Return a number as a constant, of `dtype` or of its own: Python's are int64, float64 and complex128."""
    if dtype is None:
        found = as_scalar(x)
        return ScalarConstant(found.type, found.data, name)
    type = ScalarType(dtype)
    return ScalarConstant(type, np.dtype(type.dtype).type(x), name)


def cast(x: Any, dtype: Any) -> Any:
    """Return the number `x` cast to `dtype`, or `x` itself if it has that dtype. Raises TypeError for a
    complex number that is to become a real one."""
    x, dtype = as_scalar(x), ScalarType(dtype).dtype
    return x if x.type.dtype == dtype else apply_scalar_op(Cast(dtype), x)
