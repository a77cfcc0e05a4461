"""New variables that a caller gives values for, and tensors in the shape of others.

`scalar`, `vector`, `matrix`, `row`, `col` and `tensor3` take any dtype; with the prefix d they are float64, f float32,
i int32, l int64. A row's first and a column's second length is 1, so that they broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.scalar.conversion import second
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.elemwise import apply_elemwise
from engine.tensor.type import check_dtype, static_shape, tensor_type


def tensor(name: str | None = None, dtype: Any = "float64", shape: Sequence[int | None] = ()) -> Any:
    """A variable of `dtype`; `shape` has a length, or None, for each axis. Only a length of 1 broadcasts."""
    return tensor_type(check_dtype(dtype), static_shape(shape)).make_variable(name)


@dataclass(frozen=True)
class VariableMaker:
    """`maker(name)`: a variable of `dtype` whose static shape is `shape`; both can be given otherwise in the call."""

    shape: tuple[int | None, ...]
    dtype: str = "float64"

    def __call__(
        self, name: str | None = None, dtype: Any = None, shape: Sequence[int | None] | None = None
    ) -> Any:
        lengths = self.shape if shape is None else static_shape(shape)
        if len(lengths) != len(self.shape):
            raise ValueError(
                f"Making {name}: {len(self.shape)} lengths are needed, shape {lengths} was given"
            )
        return tensor(name, self.dtype if dtype is None else dtype, lengths)


_VECTOR, _MATRIX, _ROW, _COL, _TENSOR3 = (None,), (None, None), (1, None), (None, 1), (None, None, None)

scalar, vector, matrix = VariableMaker(()), VariableMaker(_VECTOR), VariableMaker(_MATRIX)
row, col, tensor3 = VariableMaker(_ROW), VariableMaker(_COL), VariableMaker(_TENSOR3)

dscalar, fscalar = VariableMaker((), "float64"), VariableMaker((), "float32")
iscalar, lscalar = VariableMaker((), "int32"), VariableMaker((), "int64")
dvector, fvector = VariableMaker(_VECTOR, "float64"), VariableMaker(_VECTOR, "float32")
ivector, lvector = VariableMaker(_VECTOR, "int32"), VariableMaker(_VECTOR, "int64")
dmatrix, fmatrix = VariableMaker(_MATRIX, "float64"), VariableMaker(_MATRIX, "float32")
imatrix, lmatrix = VariableMaker(_MATRIX, "int32"), VariableMaker(_MATRIX, "int64")
drow, frow = VariableMaker(_ROW, "float64"), VariableMaker(_ROW, "float32")
irow, lrow = VariableMaker(_ROW, "int32"), VariableMaker(_ROW, "int64")
dcol, fcol = VariableMaker(_COL, "float64"), VariableMaker(_COL, "float32")
icol, lcol = VariableMaker(_COL, "int32"), VariableMaker(_COL, "int64")
dtensor3, ftensor3 = VariableMaker(_TENSOR3, "float64"), VariableMaker(_TENSOR3, "float32")
itensor3, ltensor3 = VariableMaker(_TENSOR3, "int32"), VariableMaker(_TENSOR3, "int64")


def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Zeros in the shape of `x`, of its dtype unless one is given."""
    return _filled(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Any:
    """Ones in the shape of `x`, of its dtype unless one is given."""
    return _filled(x, 1, dtype)


def _filled(x: Any, value: int, dtype: Any) -> Any:
    x = as_tensor_variable(x)
    return apply_elemwise(second, x, number(value, x.type.dtype if dtype is None else check_dtype(dtype)))
