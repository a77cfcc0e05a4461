"""Reductions by any associative scalar Op, as `CAReduce(scalar_op, axis)` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine import scalar
from engine.graph.apply import Apply
from engine.tensor import quantifiers
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.reduction import Max, Min, Prod, Reduction, Sum
from engine.tensor.type import check_dtype

_ACCUMULATED = {scalar.add: Sum, scalar.mul: Prod}
_EXTREMES = {scalar.maximum: Max, scalar.minimum: Min}
_QUANTIFIERS = {scalar.and_: quantifiers.All, scalar.or_: quantifiers.Any}
_BITWISE = (scalar.and_, scalar.or_, scalar.xor)


class _OfReductions(type):
    """The class of CAReduce, which has all reductions for instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Reduction) if cls is CAReduce else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Reduction) if cls is CAReduce else super().__subclasscheck__(subclass)


class CAReduce(Reduction, metaclass=_OfReductions):
    """The reduction over `axis` by `scalar_op`, in the elements' own dtype.

    Applying it makes the node of a Sum, a Prod, a Max or a Min if that is what it is, and for bools of All or
    Any. A sum or product has the dtypes given. Refuses (NotImplementedError) any other scalar Op
    but the bitwise ones.
    """

    __props__: tuple[str, ...] = ("scalar_op", "axis", "dtype", "acc_dtype")
    scalar_op: Any = None  # type: ignore[misc]  # each instance has its own

    def __init__(self, scalar_op: Any, axis: Any = None, dtype: Any = None, acc_dtype: Any = None) -> None:
        if scalar_op not in (*_ACCUMULATED, *_EXTREMES, *_BITWISE):
            raise NotImplementedError(
                f"Making a reduction by {scalar_op}: there are those by add, mul, maximum, minimum, and_, "
                "or_ and xor"
            )
        super().__init__(axis)
        self.scalar_op = scalar_op
        self.dtype = None if dtype is None else check_dtype(dtype)
        self.acc_dtype = None if acc_dtype is None else check_dtype(acc_dtype)

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if self.scalar_op in _ACCUMULATED:
            dtype = self.dtype or x.type.dtype
            op = _ACCUMULATED[self.scalar_op](self.axis, dtype, self.acc_dtype or dtype)
            return op.make_node(x)
        is_bool = x.type.dtype == "bool"
        kind = _EXTREMES.get(self.scalar_op) or (_QUANTIFIERS.get(self.scalar_op) if is_bool else None)
        return super().make_node(x) if kind is None else kind(self.axis).make_node(x)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.asarray(self.scalar_op.ufunc.reduce(inputs[0], axis=self.axis))

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]

    def __str__(self) -> str:
        axes = "axes=None" if self.axis is None else f"axis={', '.join(map(str, self.axis))}"
        return f"CAReduce{{{self.scalar_op}, {axes}}}"

    __repr__ = __str__
