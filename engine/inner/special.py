"""Softmax, log-softmax and log-sum-exp, computed without overflow; and x log(y), 0 for any y where x is 0.

The largest element is subtracted before exponentials are taken (Blanchard, Higham and Higham,
"Accurately computing the log-sum-exp and softmax functions", 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from engine.graph.apply import Apply
from engine.inner.from_graph import SymbolicOp
from engine.scalar.promotion import FLOATS
from engine.tensor.axes import axes_given, normalize_axis
from engine.tensor.broadcasting import unbroadcast_axes
from engine.tensor.conversion import as_tensor_variable, as_tensors
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, and_, eq, exp, log, log1p, mul, sub, switch, true_div
from engine.tensor.reduction import max as max_over
from engine.tensor.reduction import sum as sum_over

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class _OverAxes(SymbolicOp):
    """Base class of Ops that normalize a float tensor over `axis`: one axis, several, or all (None).

    The Op of a node has a sorted tuple of non-negative axes.
    """

    __props__ = (*(SymbolicOp.__props__ or ()), "axis")

    def __init__(self, axis: Any) -> None:
        super().__init__()
        self.axis: Any = axes_given("Normalizing a tensor", axis)

    def make_node(self, *inputs: Any) -> Apply:
        (x,) = self.filter_inputs(*inputs)
        axes = normalize_axis(f"Applying {self} to {x.type}", self.axis, x.type.ndim)
        return SymbolicOp.make_node(self if axes == self.axis else type(self)(axes), x)

    def filter_inputs(self, *inputs: Any) -> list[Any]:
        (x,) = super().filter_inputs(*inputs)
        if x.type.dtype not in FLOATS:
            raise TypeError(f"Applying {self} to {x.type}: it takes floats")
        return [x]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        count = inputs[0].type.ndim - node.inputs[0].type.ndim
        return type(self)(tuple([axis + count for axis in self.axis])).make_node(inputs[0]).outputs

    def summed(self, x: Any, keepdims: bool = True) -> Any:
        """Return the sum of `x` in its own dtype, which is exact enough: no term is above 1, and one is 1."""
        return sum_over(x, self.axis, keepdims=keepdims, acc_dtype=x.type.dtype)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{axis={None if self.axis is None else list(self.axis)}}}"

    __repr__ = __str__


def _finite(largest: Any) -> Any:
    """Return `largest`, or 0 where it is infinite: inf - inf would be NaN, and all that is divided by it."""
    return switch(eq(absolute(largest), float("inf")), 0.0, largest)


class Softmax(_OverAxes):
    """exp(x) divided by its sum over `axis`. An element that is inf becomes NaN, finite ones beside it 0."""

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        (x,) = inputs
        powers = exp(sub(x, _finite(max_over(x, self.axis, keepdims=True))))
        return [true_div(powers, self.summed(powers))]

    def logarithm(self, x: Any) -> Any:
        """Return the logarithm of this Op applied to `x`. It is finite even where the softmax underflows."""
        return LogSoftmax(self.axis)(x)

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        gradient = cotangents[0]
        if gradient is None:
            return [None]
        weighted = mul(gradient, outputs[0])
        return [sub(weighted, mul(sum_over(weighted, self.axis, keepdims=True), outputs[0]))]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        # The Jacobian of softmax is symmetric.
        return self.pullback_wanted(inputs, outputs, tangents, None)


class LogSoftmax(_OverAxes):
    """The logarithm of the softmax of x over `axis`: as x - logsumexp(x) where elements are infinite."""

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        (x,) = inputs
        moved = sub(x, _finite(max_over(x, self.axis, keepdims=True)))
        return [sub(moved, log(self.summed(exp(moved))))]

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        gradient = cotangents[0]
        if gradient is None:
            return [None]
        return [sub(gradient, mul(sum_over(gradient, self.axis, keepdims=True), exp(outputs[0])))]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        tangent = tangents[0]
        weighted = mul(tangent, exp(outputs[0]))
        return [sub(tangent, sum_over(weighted, self.axis, keepdims=True))]


class LogSumExp(_OverAxes):
    """The logarithm of the sum of exp(x) over `axis`; -inf if all elements are.

    Raises ValueError for no elements.
    """

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        (x,) = inputs
        shift = _finite(max_over(x, self.axis))
        powers = exp(sub(x, self.expanded(shift, x.type.ndim)))
        return [add(log(self.summed(powers, keepdims=False)), shift)]

    def expanded(self, variable: Any, ndim: int) -> Any:
        """Return `variable`, which has the result's axes, with axes of length 1 for the reduced ones."""
        kept = iter(range(ndim))
        return dimshuffle(variable, ["x" if axis in self.axis else next(kept) for axis in range(ndim)])

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        if cotangents[0] is None:
            return [None]
        ndim = inputs[0].type.ndim
        return [mul(self.expanded(cotangents[0], ndim), self._weights(inputs[0], outputs[0]))]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return [sum_over(mul(tangents[0], self._weights(inputs[0], outputs[0])), self.axis)]

    def _weights(self, x: Any, result: Any) -> Any:
        return exp(sub(x, self.expanded(result, x.type.ndim)))


class _TimesLog(SymbolicOp):
    """Base class of x times a logarithm of y; 0 where x is 0."""

    def __init__(self) -> None:
        super().__init__()
        self.is_inline = True

    def logarithm_of(self, y: Any) -> Any:
        """Return the logarithm."""
        raise NotImplementedError

    def divisor(self, y: Any) -> Any:
        """Return the logarithm's argument, by which x is divided in the derivative."""
        raise NotImplementedError

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        x, y = inputs
        return [switch(eq(x, 0), 0.0, mul(x, self.logarithm_of(y)))]

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        (x, y), gradient = inputs, cotangents[0]
        if gradient is None:
            return [None, None]
        found = [mul(gradient, slope) for slope in self._slopes(x, y)]
        return [
            sum_over(each, axes, keepdims=True) if (axes := unbroadcast_axes(v.type, each.type)) else each
            for v, each in zip(inputs, found, strict=True)
        ]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        slopes = self._slopes(*inputs)
        given = [mul(t, slope) for t, slope in zip(tangents, slopes, strict=True) if t is not None]
        return [reduce(add, given)]

    def _slopes(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return the derivatives by x and y. By y it is 0 where 0 is divided by 0: there the result is 0 for
        every y."""
        divisor = self.divisor(y)
        divided = switch(and_(eq(x, 0), eq(divisor, 0)), 0.0, true_div(x, divisor))
        return self.logarithm_of(y), divided


class XLogY(_TimesLog):
    """x log(y), 0 where x is 0. The gradient at x = 0 is that of x log(y)."""

    def logarithm_of(self, y: Any) -> Any:
        return log(y)

    def divisor(self, y: Any) -> Any:
        return y


class XLog1PY(_TimesLog):
    """x log(1 + y), 0 where x is 0. The gradient at x = 0 is that of x log(1 + y)."""

    def logarithm_of(self, y: Any) -> Any:
        return log1p(y)

    def divisor(self, y: Any) -> Any:
        return add(1, y)


class XLogX(SymbolicOp):
    """x log(x), 0 where x is 0. The slope there is -inf."""

    def __init__(self) -> None:
        super().__init__()
        self.is_inline = True

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        (x,) = inputs
        return [switch(eq(x, 0), 0.0, mul(x, log(x)))]

    def pullback_wanted(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool] | None,
    ) -> list[Any]:
        gradient = cotangents[0]
        return [None if gradient is None else mul(gradient, add(1, log(inputs[0])))]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return [None if tangents[0] is None else mul(tangents[0], add(1, log(inputs[0])))]


def xlogx(x: Any) -> TensorVariable:
    """Return `x` times log(x); 0 where `x` is 0. The gradient there is -inf."""
    return XLogX()(_as_floats(x))


def xlogy(x: Any, y: Any) -> TensorVariable:
    """Return `x` times log(y); 0 where `x` is 0."""
    if x is y:
        return xlogx(x)
    return XLogY()(*map(_as_floats, as_tensors([x, y])))


def xlog1py(x: Any, y: Any) -> TensorVariable:
    """Return `x` times log(1 + y); 0 where `x` is 0."""
    return XLog1PY()(*map(_as_floats, as_tensors([x, y])))


def _as_floats(x: Any) -> Any:
    x = as_tensor_variable(x)
    return x if x.type.dtype in FLOATS else cast(x, "float64")


def _applied(op: type[_OverAxes], x: Any, axis: Any) -> Any:
    x = _as_floats(x)
    return op(normalize_axis("Normalizing a tensor", axis, x.type.ndim))(x)


def softmax(c: Any, axis: Any = None) -> TensorVariable:
    """Return exp(x) divided by its sum over `axis`: one axis, several, or all (None)."""
    return _applied(Softmax, c, axis)


def log_softmax(c: Any, axis: Any = None) -> TensorVariable:
    """Return the logarithm of the softmax of `c` over `axis`: one axis, several, or all (None)."""
    return _applied(LogSoftmax, c, axis)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the logarithm of the sum of exp(x) over `axis`: one axis, several, or all (None)."""
    x = _as_floats(x)
    op = LogSumExp(normalize_axis("Normalizing a tensor", axis, x.type.ndim))
    return op.expanded(op(x), x.type.ndim) if keepdims else op(x)
