"""Input variables by rank and dtype.

`scalar`, `vector`, `matrix`, `row`, `col` and `tensor3` to `tensor7` make variables of any dtype. With a
prefix they are types, which make a variable when they are called: d float64, f float32, b int8, w int16,
i int32, l int64, c complex64, z complex128. A row's first length and a column's second are 1, so they
broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cachegraph.fingerprint.registry import register_record
from engine.scalar.promotion import DTYPES
from engine.tensor.type import broadcast_shape_of, check_dtype, static_shape, tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_LOOK_LIKE_DTYPES = (*DTYPES, "floatX")


def tensor(
    name: str | None = None,
    dtype: Any = "floatX",
    shape: Sequence[int | None] = (),
    broadcastable: Sequence[bool] | None = None,
) -> TensorVariable:
    """Return a new variable. `shape` has a length or None for each axis; only a length of 1 broadcasts.

    `broadcastable` is an older word for it (see TensorType). Raises ValueError for a name that is a dtype.
    """
    if not (name is None or isinstance(name, str)) or name in _LOOK_LIKE_DTYPES:
        raise ValueError(
            f"Making a variable named {name!r}: This name looks like a dtype, which you should pass as a "
            "keyword argument only"
        )
    lengths = static_shape(shape) if broadcastable is None else broadcast_shape_of(broadcastable)
    return tensor_type(check_dtype(dtype), lengths).make_variable(name)


class VariableMaker:
    """A function `maker(name)` that makes a variable; a call may override its `dtype` and `shape`."""

    def __init__(self, shape: tuple[int | None, ...], dtype: str = "floatX") -> None:
        self.shape = shape
        self.dtype = dtype

    def __call__(
        self, name: str | None = None, dtype: Any = None, shape: Sequence[int | None] | None = None
    ) -> TensorVariable:
        if not isinstance(shape, tuple | None):
            raise TypeError(f"Making {name} of shape {shape!r}: Shape must be a tuple")
        lengths = self.shape if shape is None else static_shape(shape)
        if len(lengths) != len(self.shape):
            raise ValueError(
                f"Making {name}: Shape must be a tuple of length {len(self.shape)}, {lengths} was given"
            )
        if (self.shape[:1] == (1,) and lengths[0] != 1) or (self.shape[1:] == (1,) and lengths[1] != 1):
            kind = "first dimension of a `row`" if self.shape[0] == 1 else "second dimension of a `col`"
            found = lengths[0] if self.shape[0] == 1 else lengths[1]
            raise ValueError(f"Making {name}: The {kind} must have shape 1, got {found}")
        return tensor(name, self.dtype if dtype is None else dtype, lengths)


register_record(VariableMaker, ("shape", "dtype"))  # users' Ops have such itypes

_SCALAR, _VECTOR, _MATRIX = (), (None,), (None, None)
_ROW, _COL = (1, None), (None, 1)
_TENSOR3, _TENSOR4, _TENSOR5, _TENSOR6, _TENSOR7 = [(None,) * ndim for ndim in range(3, 8)]

scalar = VariableMaker(_SCALAR)
vector = VariableMaker(_VECTOR)
matrix = VariableMaker(_MATRIX)
row = VariableMaker(_ROW)
col = VariableMaker(_COL)
tensor3 = VariableMaker(_TENSOR3)
tensor4 = VariableMaker(_TENSOR4)
tensor5 = VariableMaker(_TENSOR5)
tensor6 = VariableMaker(_TENSOR6)
tensor7 = VariableMaker(_TENSOR7)

dscalar = tensor_type("float64", _SCALAR)
fscalar = tensor_type("float32", _SCALAR)
bscalar = tensor_type("int8", _SCALAR)
wscalar = tensor_type("int16", _SCALAR)
iscalar = tensor_type("int32", _SCALAR)
lscalar = tensor_type("int64", _SCALAR)
cscalar = tensor_type("complex64", _SCALAR)
zscalar = tensor_type("complex128", _SCALAR)
dvector = tensor_type("float64", _VECTOR)
fvector = tensor_type("float32", _VECTOR)
bvector = tensor_type("int8", _VECTOR)
wvector = tensor_type("int16", _VECTOR)
ivector = tensor_type("int32", _VECTOR)
lvector = tensor_type("int64", _VECTOR)
cvector = tensor_type("complex64", _VECTOR)
zvector = tensor_type("complex128", _VECTOR)
dmatrix = tensor_type("float64", _MATRIX)
fmatrix = tensor_type("float32", _MATRIX)
bmatrix = tensor_type("int8", _MATRIX)
wmatrix = tensor_type("int16", _MATRIX)
imatrix = tensor_type("int32", _MATRIX)
lmatrix = tensor_type("int64", _MATRIX)
cmatrix = tensor_type("complex64", _MATRIX)
zmatrix = tensor_type("complex128", _MATRIX)
drow = tensor_type("float64", _ROW)
frow = tensor_type("float32", _ROW)
brow = tensor_type("int8", _ROW)
wrow = tensor_type("int16", _ROW)
irow = tensor_type("int32", _ROW)
lrow = tensor_type("int64", _ROW)
crow = tensor_type("complex64", _ROW)
zrow = tensor_type("complex128", _ROW)
dcol = tensor_type("float64", _COL)
fcol = tensor_type("float32", _COL)
bcol = tensor_type("int8", _COL)
wcol = tensor_type("int16", _COL)
icol = tensor_type("int32", _COL)
lcol = tensor_type("int64", _COL)
ccol = tensor_type("complex64", _COL)
zcol = tensor_type("complex128", _COL)
dtensor3 = tensor_type("float64", _TENSOR3)
ftensor3 = tensor_type("float32", _TENSOR3)
btensor3 = tensor_type("int8", _TENSOR3)
wtensor3 = tensor_type("int16", _TENSOR3)
itensor3 = tensor_type("int32", _TENSOR3)
ltensor3 = tensor_type("int64", _TENSOR3)
ctensor3 = tensor_type("complex64", _TENSOR3)
ztensor3 = tensor_type("complex128", _TENSOR3)
dtensor4 = tensor_type("float64", _TENSOR4)
ftensor4 = tensor_type("float32", _TENSOR4)
btensor4 = tensor_type("int8", _TENSOR4)
wtensor4 = tensor_type("int16", _TENSOR4)
itensor4 = tensor_type("int32", _TENSOR4)
ltensor4 = tensor_type("int64", _TENSOR4)
ctensor4 = tensor_type("complex64", _TENSOR4)
ztensor4 = tensor_type("complex128", _TENSOR4)
dtensor5 = tensor_type("float64", _TENSOR5)
ftensor5 = tensor_type("float32", _TENSOR5)
btensor5 = tensor_type("int8", _TENSOR5)
wtensor5 = tensor_type("int16", _TENSOR5)
itensor5 = tensor_type("int32", _TENSOR5)
ltensor5 = tensor_type("int64", _TENSOR5)
ctensor5 = tensor_type("complex64", _TENSOR5)
ztensor5 = tensor_type("complex128", _TENSOR5)
dtensor6 = tensor_type("float64", _TENSOR6)
ftensor6 = tensor_type("float32", _TENSOR6)
btensor6 = tensor_type("int8", _TENSOR6)
wtensor6 = tensor_type("int16", _TENSOR6)
itensor6 = tensor_type("int32", _TENSOR6)
ltensor6 = tensor_type("int64", _TENSOR6)
ctensor6 = tensor_type("complex64", _TENSOR6)
ztensor6 = tensor_type("complex128", _TENSOR6)
dtensor7 = tensor_type("float64", _TENSOR7)
ftensor7 = tensor_type("float32", _TENSOR7)
btensor7 = tensor_type("int8", _TENSOR7)
wtensor7 = tensor_type("int16", _TENSOR7)
itensor7 = tensor_type("int32", _TENSOR7)
ltensor7 = tensor_type("int64", _TENSOR7)
ctensor7 = tensor_type("complex64", _TENSOR7)
ztensor7 = tensor_type("complex128", _TENSOR7)
