"""Reductions over axes (sum, product, extremes, mean, variance), and cumulative sums and products."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.exceptions import AxisError, ComplexWarning

from engine import scalar
from engine.errors import ComplexError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import COMPLEX, FLOATS, INEXACT, common_dtype
from engine.tensor.axes import axes_given, axis_of, normalize_axis, numbers_of, with_axis
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import apply_elemwise, as_gradient, cast, dimshuffle, rearranged
from engine.tensor.math import abs as absolute
from engine.tensor.math import eq, maximum, mul, second, sqr, sqrt, sub, switch, true_div
from engine.tensor.shape import flatten, size_over
from engine.tensor.type import TensorType, check_dtype, tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_DOING = "Reducing a tensor"
_DEFAULT_SUM = {
    **dict.fromkeys(("bool", "int8", "int16", "int32"), "int64"),
    **dict.fromkeys(("uint8", "uint16", "uint32"), "uint64"),
}
_DEFAULT_ACCUMULATOR = {"float16": "float32", "float32": "float64", "complex64": "complex128"}


class Reduction(Op):
    """Base class of the reductions over `axis`: one axis, several, or all (None).

    The Op of a node has a sorted tuple of non-negative axes.
    """

    __props__: tuple[str, ...] = ("axis",)
    scalar_op: ClassVar[Any] = None
    """The scalar Op that combines two elements, if there is one."""

    def __init__(self, axis: Any) -> None:
        self.axis: Any = axes_given("Making a reduction", axis)

    def output_dtype(self, dtype: str) -> str:
        """Return the result's dtype for a tensor of `dtype`."""
        return dtype

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        axes = _axes_of(f"Applying {self} to {x.type}", self.axis, x.type.ndim)
        op = self if axes == self.axis else with_axis(self, axes)
        return Apply(op, [x], [_reduced_type(op, x.type).make_variable()])

    def expand(self, variable: Any, ndim: int) -> Any:
        """Return `variable`, which has the result's axes, with axes of length 1 for the reduced ones."""
        kept = iter(range(ndim))
        return dimshuffle(variable, ["x" if axis in self.axis else next(kept) for axis in range(ndim)])

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        count = inputs[0].type.ndim - node.inputs[0].type.ndim
        return with_axis(self, tuple([axis + count for axis in self.axis])).make_node(inputs[0]).outputs

    def __str__(self) -> str:
        return f"{type(self).__name__}{{axis={None if self.axis is None else list(self.axis)}}}"

    __repr__ = __str__


def _axes_of(doing: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the sorted axes; a number has the axes 0 and -1, as for numpy, which change nothing."""
    if ndim or axis is None:
        return normalize_axis(doing, axis, ndim)
    given = tuple(numbers_of(doing, axis))
    if given in ((), (0,), (-1,)):
        return ()
    raise AxisError(f"{doing}: axis {given} is out of bounds for array of dimension 0")


@lru_cache(maxsize=4096)
def _reduced_type(op: Reduction, type: TensorType) -> TensorType:
    shape = [length for axis, length in enumerate(type.shape) if axis not in op.axis]
    return tensor_type(op.output_dtype(type.dtype), tuple(shape))


class _Accumulated(Reduction):
    """Base class of sums and products, accumulated in `acc_dtype` and returned as `dtype`."""

    __props__: tuple[str, ...] = ("axis", "dtype", "acc_dtype")

    def __init__(self, axis: Any = None, dtype: Any = None, acc_dtype: Any = None) -> None:
        super().__init__(axis)
        self.dtype: Any = None if dtype is None else check_dtype(dtype)
        self.acc_dtype: Any = None if acc_dtype is None else check_dtype(acc_dtype)

    def make_node(self, x: Any) -> Apply:
        """Return the node of an Op with both dtypes: what is None follows from that of `x`, as in `sum`."""
        x = as_tensor_variable(x)
        if self.dtype is not None and self.acc_dtype is not None:
            return super().make_node(x)
        dtype, acc_dtype = _dtypes_of(x.type.dtype, self.dtype, self.acc_dtype)
        return self.with_dtypes(dtype, acc_dtype).make_node(x)

    def with_dtypes(self, dtype: str, acc_dtype: str) -> _Accumulated:
        """Return this reduction in other dtypes."""
        return type(self)(self.axis, dtype, acc_dtype)

    def output_dtype(self, dtype: str) -> str:
        if any(wide in COMPLEX and narrow not in COMPLEX for wide, narrow in self._conversions(dtype)):
            raise TypeError(
                f"Applying {self} to elements of {dtype}, accumulated in {self.acc_dtype} and returned as "
                f"{self.dtype}: this would drop imaginary parts; take real, imag, abs or angle first"
            )
        return self.dtype

    def _conversions(self, dtype: str) -> tuple[tuple[str, str], ...]:
        return (dtype, self.acc_dtype), (self.acc_dtype, self.dtype)


class Sum(_Accumulated):
    """The sum over `axis`, accumulated in `acc_dtype` and returned as `dtype`."""

    scalar_op: ClassVar[Any] = scalar.add

    differentiates_complex = True

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        with np.errstate(all="ignore"):
            total = np.sum(inputs[0], axis=self.axis, dtype=self.acc_dtype)
            output_storage[0][0] = np.asarray(total).astype(self.dtype, copy=False)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None or self.dtype not in INEXACT:
            return [None]
        x = inputs[0]
        dtype, ndim = x.type.dtype, x.type.ndim

        def repeated(gradient: Any) -> Any:
            gradient = self.expand(gradient, ndim)
            return second(x, as_gradient(gradient, dtype))

        return [rearranged(cotangents[0], lambda condition: self.expand(condition, ndim), repeated)]


class Prod(_Accumulated):
    """The product over `axis`, accumulated in `acc_dtype` and returned as `dtype`.

    `no_zeros_in_input` promises that no element is 0: the gradient is then a quotient.
    """

    scalar_op: ClassVar[Any] = scalar.mul

    __props__ = ("axis", "dtype", "acc_dtype", "no_zeros_in_input")

    def __init__(
        self, axis: Any = None, dtype: Any = None, acc_dtype: Any = None, no_zeros_in_input: bool = False
    ) -> None:
        super().__init__(axis, dtype, acc_dtype)
        self.no_zeros_in_input = bool(no_zeros_in_input)

    def with_dtypes(self, dtype: str, acc_dtype: str) -> Prod:
        return Prod(self.axis, dtype, acc_dtype, self.no_zeros_in_input)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        with np.errstate(all="ignore"):
            found = np.prod(inputs[0], axis=self.axis, dtype=self.acc_dtype)
            output_storage[0][0] = np.asarray(found).astype(self.dtype, copy=False)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the product of all other elements: the whole product divided by each, unless it is 0."""
        x, gradient = inputs[0], cotangents[0]
        if gradient is None or self.dtype not in FLOATS:
            return [None]
        if self.no_zeros_in_input:
            return [true_div(self.expand(mul(gradient, outputs[0]), x.type.ndim), x)]
        ndim, is_zero = x.type.ndim, eq(x, 0)
        others = switch(is_zero, 1, x)
        product = self.expand(self.make_node(others).outputs[0], ndim)
        zeros = sum(is_zero, self.axis, keepdims=True)
        of_one = switch(eq(zeros, 1), switch(is_zero, product, 0), 0)
        rest = switch(eq(zeros, 0), true_div(product, others), of_one)
        return [mul(self.expand(gradient, ndim), rest)]


class ProdWithoutZeros(_Accumulated):
    """The product over `axis` of the elements that are not 0: 1 if there are none.

    Applying it makes the node of a `Prod`.
    """

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        ones = switch(eq(x, 0), 1, x)
        return Prod(self.axis, self.dtype, self.acc_dtype).make_node(cast(ones, x.type.dtype))


class ExtremumOver(Reduction):
    """Base class of the largest and smallest element. Every element equal to it gets the whole gradient.

    Over no elements it raises ValueError, or, if `initial`, is what changes no other element: -inf for the
    largest float, inf for the smallest, or the end of the integers.
    """

    __props__ = ("axis", "initial")

    def __init__(self, axis: Any, initial: bool = False) -> None:
        super().__init__(axis)
        self.initial = bool(initial)

    def bounds(self, dtype: Any) -> dict[str, Any]:
        """Return the arguments by which numpy's function starts from the neutral element."""
        if not self.initial:
            return {}
        low, high = _ends(np.dtype(dtype))
        return {"initial": low if isinstance(self, Max) else high}

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        x, gradient = inputs[0], cotangents[0]
        if gradient is None or x.type.dtype not in FLOATS:
            return [None]
        found = eq(x, self.expand(outputs[0], x.type.ndim))
        return [switch(found, self.expand(gradient, x.type.ndim), 0)]


def _ends(dtype: np.dtype) -> tuple[Any, Any]:
    """Return the least and the largest value of `dtype`."""
    if dtype.kind == "c":
        raise ComplexError(f"Taking an extreme of no elements of {dtype}: there is none")
    if dtype.kind == "f":
        return -np.inf, np.inf
    return (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


class Max(ExtremumOver):
    """The largest element over `axis`, or NaN if there is one."""

    scalar_op: ClassVar[Any] = scalar.maximum

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        (x,) = inputs
        output_storage[0][0] = np.asarray(np.max(x, axis=self.axis, **self.bounds(x.dtype)))


class Min(ExtremumOver):
    """The smallest element over `axis`, or NaN if there is one."""

    scalar_op: ClassVar[Any] = scalar.minimum

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        (x,) = inputs
        output_storage[0][0] = np.asarray(np.min(x, axis=self.axis, **self.bounds(x.dtype)))


def _reduced(op: Reduction, x: Any, keepdims: bool) -> Any:
    result = op.make_node(x).outputs[0]
    return op.expand(result, x.type.ndim) if keepdims else result


def sum(
    input: Any,
    axis: Any = None,
    dtype: str | None = None,
    keepdims: bool = False,
    acc_dtype: str | None = None,
) -> TensorVariable:
    """Return the sum of `input` over `axis`: one axis, several, or all (None).

    By default bools and narrow integers give int64, narrow unsigned ones uint64, and float32 is accumulated
    in float64. `dtype` and `acc_dtype` override this.
    """
    return _accumulated(Sum, as_tensor_variable(input), axis, dtype, keepdims, acc_dtype)


def prod(
    input: Any,
    axis: Any = None,
    dtype: str | None = None,
    keepdims: bool = False,
    acc_dtype: str | None = None,
    no_zeros_in_input: bool = False,
) -> TensorVariable:
    """Return the product of `input` over `axis`: one axis, several, or all (None). Dtypes are as for `sum`.

    With `no_zeros_in_input`, which promises that, the gradient is a quotient.
    """
    op = _PROD_WITHOUT_ZEROS if no_zeros_in_input else Prod
    return _accumulated(op, as_tensor_variable(input), axis, dtype, keepdims, acc_dtype)


_PROD_WITHOUT_ZEROS = partial(Prod, no_zeros_in_input=True)


def _accumulated(op: Any, x: Any, axis: Any, dtype: str | None, keepdims: bool, acc_dtype: str | None) -> Any:
    axes = _axes_of(_DOING, axis, x.type.ndim)
    dtype, acc_dtype = _dtypes_of(x.type.dtype, dtype, acc_dtype)
    return _reduced(_accumulated_op(op, axes, dtype, acc_dtype), x, keepdims)


def _dtypes_of(found: str, dtype: Any, acc_dtype: Any) -> tuple[str, str]:
    """Return the dtypes of a sum of elements of `found`, and of its accumulator, if some are not given."""
    dtype = _DEFAULT_SUM.get(found, found) if dtype is None else check_dtype(dtype)
    return dtype, acc_dtype or common_dtype(dtype, _DEFAULT_ACCUMULATOR.get(found, dtype))


@lru_cache(maxsize=1024)
def _accumulated_op(op: Any, axis: tuple[int, ...], dtype: str, acc_dtype: str) -> Any:
    return op(axis, dtype, acc_dtype)


def mean(
    input: Any,
    axis: Any = None,
    dtype: str | None = None,
    keepdims: bool = False,
    acc_dtype: str | None = None,
) -> TensorVariable:
    """Return the mean of `input` over `axis`: of its dtype for floats and complex numbers, otherwise float64.

    With a `dtype`, the mean has it, or if that is one of integers, is the float64 quotient of a sum in
    it. If that is real and `input` is not, the mean is that of the real parts, with numpy's ComplexWarning.
    """
    input = as_tensor_variable(input)
    if dtype and input.type.dtype in COMPLEX and check_dtype(dtype) not in COMPLEX:
        warnings.warn(
            f"The mean of {input} as {dtype} discards imaginary parts", ComplexWarning, stacklevel=2
        )
        input = apply_elemwise(scalar.real, input)
    found = input.type.dtype
    axes = _axes_of(_DOING, axis, input.type.ndim)
    wanted = check_dtype(dtype or (found if found in INEXACT else "float64"))
    # The sum of many small numbers is more than float16 holds.
    summed = "float32" if wanted == "float16" else wanted
    input = cast(input, common_dtype(found, summed)) if wanted in INEXACT else input
    total = sum(input, axes, summed, keepdims, acc_dtype)
    result = true_div(total, cast(size_over(input, axes), summed if summed in INEXACT else "float64"))
    return cast(result, wanted) if wanted in INEXACT else result


def max(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the largest element of `x` over `axis`, or NaN if there is one."""
    return _extremum(Max, x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the smallest element of `x` over `axis`, or NaN if there is one."""
    return _extremum(Min, x, axis, keepdims)


def _extremum(kind: type[ExtremumOver], x: Any, axis: Any, keepdims: bool) -> Any:
    x = as_tensor_variable(x)
    axes = _axes_of(_DOING, axis, x.type.ndim)
    return _reduced(kind(axes), x, keepdims) if axes else x


def var(
    input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False, corrected: bool = False
) -> TensorVariable:
    """Return the variance over `axis`: the sum of squared deviations, divided by the count minus `ddof`, or
    by 0 if that is negative.

    The deviations of a rounded mean do not add up to 0; with `corrected`, their sum is accounted for.
    """
    input = as_tensor_variable(input)
    axes = _axes_of("Reducing a tensor", axis, input.type.ndim)
    deviations = sub(input, mean(input, axes, keepdims=True))
    squares = sqr(absolute(deviations) if input.type.dtype in COMPLEX else deviations)
    less = ddof.item() if isinstance(ddof, np.generic | np.ndarray) and np.ndim(ddof) == 0 else ddof
    if not isinstance(less, int | float) and getattr(getattr(less, "type", None), "ndim", None) != 0:
        raise TypeError(f"Taking a variance: ddof is {ddof!r}; it must be a number")
    if isinstance(less, int | float) and less == 0 and not corrected:
        return mean(squares, axes, keepdims=keepdims)
    dtype = squares.type.dtype
    size = size_over(input, axes)
    total = sum(squares, axes, keepdims=keepdims)
    if corrected:
        rest = absolute(sum(deviations, axes, keepdims=keepdims))
        total = sub(total, true_div(sqr(rest), cast(size, dtype)))
    return true_div(total, cast(maximum(sub(size, less), 0), dtype))


def std(
    input: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False, corrected: bool = False
) -> TensorVariable:
    """Return the standard deviation over `axis`, the square root of `var`."""
    return sqrt(var(input, axis, ddof, keepdims, corrected))


class CumOp(Op):
    """The cumulative sum (`mode` "add") or product ("mul") along `axis`, in the dtype of the input."""

    __props__ = ("axis", "mode")

    def __init__(self, axis: int, mode: str = "add") -> None:
        (self.axis,) = numbers_of("Making an Op along an axis", [axis])
        self.mode = mode
        if mode not in ("add", "mul"):
            raise ValueError(f'Making a CumOp with mode={mode!r}: it must be "add" or "mul"')

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if x.type.dtype == "bool":
            raise TypeError(f"Applying {self} to {x.type}: it takes numbers")
        axis = axis_of(f"Applying {self} to {x.type}", self.axis, x.type.ndim)
        return Apply(self if axis == self.axis else with_axis(self, axis), [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        function = np.cumsum if self.mode == "add" else np.cumprod
        with np.errstate(all="ignore"):
            output_storage[0][0] = function(inputs[0], axis=self.axis, dtype=inputs[0].dtype)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the gradient; that of a product holds for nonzero elements."""
        x, gradient = inputs[0], cotangents[0]
        if gradient is None or x.type.dtype not in FLOATS:
            return [None]
        if self.mode == "add":
            return [self._from_end(gradient)]
        return [true_div(self._from_end(mul(gradient, outputs[0])), x)]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        count = inputs[0].type.ndim - node.inputs[0].type.ndim
        return with_axis(self, self.axis + count).make_node(inputs[0]).outputs

    def _from_end(self, x: Any) -> Any:
        """Return the cumulative sums from the end."""
        backwards = tuple([slice(None)] * self.axis + [slice(None, None, -1)])
        found: Any = CumOp(self.axis, "add").make_node(x[backwards]).outputs[0]
        return found[backwards]

    def __str__(self) -> str:
        return f"CumOp{{{self.axis}, {self.mode}}}"

    __repr__ = __str__


def cumsum(x: Any, axis: Any = None) -> TensorVariable:
    """Return the cumulative sum along `axis`; of the flattened `x` if None.

    Bools and narrow integers become int64, narrow unsigned ones uint64.
    """
    return _cumulative(x, axis, "add")


def cumprod(x: Any, axis: Any = None) -> TensorVariable:
    """Return the cumulative product along `axis`, or of the flattened `x` if None.

    Dtypes are as for `cumsum`. Its gradient holds for nonzero elements.
    """
    return _cumulative(x, axis, "mul")


def _cumulative(x: Any, axis: Any, mode: str) -> Any:
    x = as_tensor_variable(x)
    if axis is None:
        x, axis = flatten(x), 0
    number = axis_of("Adding or multiplying up a tensor", axis, x.type.ndim)
    x = cast(x, _DEFAULT_SUM.get(x.type.dtype, x.type.dtype))
    return CumOp(number, mode).make_node(x).outputs[0]
