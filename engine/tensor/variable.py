"""`TensorVariable`: a tensor in a graph. Its operators and methods are numpy's and build nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from engine.graph.variables import Constant, Variable

if TYPE_CHECKING:
    from engine.tensor.type import TensorType

operations: Any = None
"""The package `engine.tensor`, set when it is imported.

Every operation makes variables and so imports this module, which therefore cannot import the operations.
"""


def _operators(
    name: str,
) -> tuple[Callable[[Any, Any], TensorVariable], Callable[[Any, Any], TensorVariable]]:
    """Return the methods of a binary operator and of its reflection; `name` is the operation's name."""

    def operator(self: Any, other: Any) -> Any:
        return getattr(operations, name)(self, other)

    def reflected(self: Any, other: Any) -> Any:
        return getattr(operations, name)(other, self)

    return operator, reflected


_UFUNCS = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "true_div",
    "floor_divide": "floor_div",
    "remainder": "mod",
    "power": "pow",
    "negative": "neg",
    "absolute": "abs",
    "square": "sqr",
    "rint": "round",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "bitwise_and": "and_",
    "bitwise_or": "or_",
    "bitwise_xor": "xor",
    **{
        name: name
        for name in (
            "add matmul maximum minimum invert sign floor ceil trunc reciprocal sqrt exp exp2 expm1 log "
            "log1p log2 log10 logaddexp sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh "
            "arccosh arctanh hypot copysign nextafter signbit left_shift "
            "right_shift logical_and logical_or logical_xor logical_not deg2rad rad2deg isnan isinf "
            "isfinite conjugate"
        ).split()
    },
}
"""The names of operations by those of numpy's functions."""


def _method(name: str) -> Callable[..., TensorVariable]:
    """Return the method that applies the operation `name` to a tensor and further arguments."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(operations, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Return `{name}` of this tensor; further arguments are those of the function."
    return method


class TensorVariable(Variable):
    """A tensor. `==` and `hash` compare identity; `eq` and `neq` compare elements.

    A Python number that meets a tensor takes the tensor's dtype (NEP 50).
    """

    __slots__ = ()
    type: TensorType
    __array_priority__ = 1000

    @property
    def dtype(self) -> str:
        """The dtype of the elements."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.ndim

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """True for each axis of static length 1."""
        return self.type.broadcastable

    @property
    def shape(self) -> TensorVariable:
        """The lengths of the axes, an int64 vector."""
        return operations.shape(self)

    @property
    def size(self) -> TensorVariable:
        """The number of elements, a 0-d int64."""
        return operations.size(self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Return the operation of the name that numpy gives `ufunc`, applied to `inputs`.

        `==` and `!=` of an array and a variable compare identity, as those of variables do.
        """
        if ufunc in (np.equal, np.not_equal):
            return ufunc is np.not_equal
        name = _UFUNCS.get(ufunc.__name__)
        if name is None or method != "__call__" or options:
            return NotImplemented
        return getattr(operations, name)(*inputs)

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("true_div")
    __floordiv__, __rfloordiv__ = _operators("floor_div")
    __mod__, __rmod__ = _operators("mod")
    __pow__, __rpow__ = _operators("pow")
    __matmul__, __rmatmul__ = _operators("matmul")

    __lshift__, __rlshift__ = _operators("left_shift")
    __rshift__, __rrshift__ = _operators("right_shift")

    def __neg__(self) -> TensorVariable:
        return operations.neg(self)

    def __pos__(self) -> TensorVariable:
        return self

    def __abs__(self) -> TensorVariable:
        return operations.abs(self)

    def __invert__(self) -> TensorVariable:
        return operations.invert(self)

    __and__, __rand__ = _operators("and_")
    __or__, __ror__ = _operators("or_")
    __xor__, __rxor__ = _operators("xor")
    __lt__ = _operators("lt")[0]
    __le__ = _operators("le")[0]
    __gt__ = _operators("gt")[0]
    __ge__ = _operators("ge")[0]

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"Taking the truth of {self}: a variable of a graph has no value yet; use where, and_ or or_, "
            "or compare with `is`"
        )

    def __len__(self) -> NoReturn:
        raise TypeError(f"Taking the length of {self}: it is known when the graph runs; use shape_i(x, 0)")

    def __iter__(self) -> Iterator[TensorVariable]:
        """Return an iterator over the elements of the first axis. Raises TypeError unless its static length
        is known.
        """
        length = self.type.shape[0] if self.type.ndim else None
        if length is None:
            raise TypeError(
                f"Iterating over {self}: its length is known when the graph runs; index it instead"
            )
        return iter([self[position] for position in range(length)])

    def __getitem__(self, index: Any) -> TensorVariable:
        return operations.indexing.get_item(self, index)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            f"'{type(self).__name__}' object does not support item assignment: variables do not change. Use "
            "the output of `x[idx].set` or `x[idx].inc` instead."
        )

    def set(self, y: Any, **options: Any) -> TensorVariable:
        """Return the tensor that this part, `x[index]`, was taken from, with the part set to `y`.

        `options` are those of `set_subtensor`.
        """
        return operations.set_subtensor(self, y, **options)

    def inc(self, y: Any, **options: Any) -> TensorVariable:
        """Return the tensor that this part, `x[index]`, was taken from, with `y` added to the part.

        `options` are those of `inc_subtensor`.
        """
        return operations.inc_subtensor(self, y, **options)

    def nonzero(self, return_matrix: bool = False) -> Any:
        """Return the indices of the nonzero elements, a vector per axis, or with `return_matrix` a matrix."""
        return operations.nonzero(self, return_matrix)

    def eq(self, other: Any) -> TensorVariable:
        """Return True for each element that is equal."""
        return operations.eq(self, other)

    def neq(self, other: Any) -> TensorVariable:
        """Return True for each element that differs."""
        return operations.neq(self, other)

    @property
    def T(self) -> TensorVariable:
        """The tensor with its axes in reverse order."""
        return operations.transpose(self)

    def transpose(self, *axes: Any) -> TensorVariable:
        """Return the tensor with its axes in the order `axes`, or reversed without any."""
        if (len(axes) == 1 and np.ndim(axes[0]) != 0) or axes == (None,):
            return operations.transpose(self, axes[0])
        return operations.transpose(self, axes or None)

    def dimshuffle(self, *pattern: Any) -> TensorVariable:
        """Return the tensor with its axes in the order `pattern`; each "x" adds an axis of length 1."""
        if len(pattern) == 1 and not isinstance(pattern[0], str) and np.ndim(pattern[0]) == 1:
            return operations.elemwise.shuffled(self, pattern[0])
        return operations.elemwise.shuffled(self, pattern)

    def reshape(self, *shape: Any, ndim: int | None = None) -> TensorVariable:
        """Return the elements, in C order, in another shape; one length may be -1. A vector of unknown
        length has `ndim` lengths."""
        return operations.reshape(self, shape[0] if len(shape) == 1 else shape, ndim)

    def flatten(self, ndim: int = 1) -> TensorVariable:
        """Return the tensor with `ndim` axes: the last ones merged."""
        return operations.flatten(self, ndim)

    def ravel(self) -> TensorVariable:
        """Return the elements as a vector, in C order."""
        return operations.flatten(self)

    def sum(
        self, axis: Any = None, dtype: str | None = None, keepdims: bool = False, acc_dtype: str | None = None
    ) -> TensorVariable:
        """Return the sum over `axis`."""
        return operations.sum(self, axis, dtype, keepdims, acc_dtype)

    def mean(
        self, axis: Any = None, dtype: str | None = None, keepdims: bool = False, acc_dtype: str | None = None
    ) -> TensorVariable:
        """Return the mean over `axis`."""
        return operations.mean(self, axis, dtype, keepdims, acc_dtype)

    def max(self, axis: Any = None, keepdims: bool = False) -> TensorVariable:
        """Return the largest element over `axis`."""
        return operations.max(self, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> TensorVariable:
        """Return the smallest element over `axis`."""
        return operations.min(self, axis, keepdims)

    def dot(self, other: Any) -> TensorVariable:
        """Return the matrix product."""
        return operations.dot(self, other)

    def astype(self, dtype: str) -> TensorVariable:
        """Return the tensor cast to `dtype`."""
        return operations.cast(self, dtype)

    abs, ceil, floor, trunc, conj, conjugate = map(_method, "abs ceil floor trunc conj conjugate".split())
    exp, exp2, expm1, log, log10 = map(_method, "exp exp2 expm1 log log10".split())
    log1p, log2, sqrt, deg2rad, rad2deg = map(_method, "log1p log2 sqrt deg2rad rad2deg".split())
    sin, cos, tan, arcsin, arccos, arctan = map(_method, "sin cos tan arcsin arccos arctan".split())
    sinh, cosh, tanh, arcsinh, arccosh, arctanh = map(
        _method, "sinh cosh tanh arcsinh arccosh arctanh".split()
    )
    all, any, prod, ptp, std, var = map(_method, "all any prod ptp std var".split())
    argmax, argmin, argsort, sort, searchsorted = map(
        _method, "argmax argmin argsort sort searchsorted".split()
    )
    cumprod, cumsum, diagonal, trace, repeat = map(_method, "cumprod cumsum diagonal trace repeat".split())
    choose, clip, squeeze, swapaxes, take, nonzero_values = map(
        _method, "choose clip squeeze swapaxes take nonzero_values".split()
    )
    copy = _method("tensor_copy")
    __divmod__ = _method("divmod")
    __ceil__, __floor__, __trunc__ = map(_method, "ceil floor trunc".split())

    def __rdivmod__(self, other: Any) -> Any:
        return operations.divmod(other, self)

    def round(self, mode: str | None = None) -> TensorVariable:
        """Return the elements rounded to whole numbers, halves to even ones unless `mode` says
        "half_away_from_zero".
        """
        return operations.round(self, mode)

    def fill(self, value: Any) -> TensorVariable:
        """Return a tensor of this shape whose elements are `value`."""
        return operations.fill(self, value)

    def compress(self, condition: Any, axis: int | None = None) -> TensorVariable:
        """Return the slices along `axis` where the vector `condition` is true."""
        return operations.compress(condition, self, axis)

    def norm(self, L: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
        """Return the sum of the absolute elements to the power of `L` over `axis`, to the power of 1 / L.

        Raises NotImplementedError for an `L` of 0 or infinity.
        """
        if L == 0 or np.isinf(L):
            raise NotImplementedError(f"Taking a norm: L is {L}; linalg.norm has norms of 0 and infinity")
        return operations.sum(abs(self) ** L, axis, keepdims=keepdims) ** (1 / L)

    @property
    def mT(self) -> TensorVariable:
        """The tensor with its last two axes exchanged."""
        return operations.matrix_transpose(self)

    @property
    def real(self) -> TensorVariable:
        """The real parts of the elements: the tensor itself unless it is complex."""
        return operations.real(self)

    @property
    def imag(self) -> TensorVariable:
        """The imaginary parts of the elements: zeros unless it is complex."""
        return operations.imag(self)

    def transfer(self, target: str) -> TensorVariable:
        """Return this tensor on the device `target`, which is "cpu". Raises ValueError for any other."""
        return operations.transfer(self, target)

    def get_underlying_scalar_constant(self) -> Any:
        """Return the number that this tensor is known to be. Raises NotScalarConstantError if none."""
        return operations.get_underlying_scalar_constant_value(self)

    def zeros_like(self, dtype: str | None = None) -> TensorVariable:
        """Return zeros in the shape of this tensor."""
        return operations.zeros_like(self, dtype)

    def ones_like(self, dtype: str | None = None) -> TensorVariable:
        """Return ones in the shape of this tensor."""
        return operations.ones_like(self, dtype)


class TensorConstant(TensorVariable, Constant):
    """A tensor known when the graph is built. `data` is C-contiguous and read-only.

    An array that somebody could still change is copied. A number or a list becomes an array of the type.
    """

    __slots__ = ()

    def __init__(self, type: TensorType, data: Any, name: str | None = None) -> None:
        super().__init__(type, immutable(data if isinstance(data, np.ndarray) else type.filter(data)), name)

    @property
    def is_data(self) -> bool:
        """True if it is too large for rewrites and keys to read."""
        return operations.is_data(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "data": immutable(state["data"])})

    def __str__(self) -> str:
        value = str(self.data) if self.data.size <= 6 else f"<{self.type} constant>"
        return value if self.name is None else f"{self.name}{{{value}}}"

    __repr__ = __str__


def immutable(data: np.ndarray) -> np.ndarray:
    """Return `data`, or a copy, as a C-contiguous array that nobody can ever write to."""
    if data.flags.c_contiguous and _is_immutable(data):
        return data
    return np.ndarray(data.shape, data.dtype, data.tobytes())


def _is_immutable(data: Any) -> bool:
    """Return True if `data` views bytes. Another read-only array can be made writable by its owner."""
    while isinstance(data, np.ndarray):
        if data.flags.writeable:
            return False
        data = data.base
    return isinstance(data, bytes)
