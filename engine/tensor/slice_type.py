"""Slices as values of a graph, for users' Ops that take them; indexing holds slices by their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, ClassVar

from engine.graph.apply import Apply
from engine.graph.generic import Generic
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_symbolic as variable_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.none_type import NoneConst


def _of_ints(*bounds: Any) -> slice:
    return slice(*[None if bound is None else index(bound) for bound in bounds])


class SliceConstant(Constant):
    """A constant whose `data` is a slice; bounds that are arrays of 0 dimensions become ints."""

    def __init__(self, type: Any, data: slice, name: str | None = None) -> None:
        super().__init__(type, _of_ints(data.start, data.stop, data.step), name)

    def __str__(self) -> str:
        return self.name or f"SliceConstant{{{self.data.start}, {self.data.stop}, {self.data.step}}}"

    __repr__ = __str__


class SliceType(Generic):
    """The set of all slices."""

    constant_type: ClassVar[type[Constant]] = SliceConstant

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> slice:
        """Return `value`; refuse (TypeError) what is no slice."""
        if not isinstance(value, slice):
            raise TypeError(f"Using {value!r} ({type(value).__name__}) where a slice is due")
        return value

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        return self.constant_type(self, self.filter(value), name)

    def __str__(self) -> str:
        return "slice"

    __repr__ = __str__


slicetype = SliceType()
NoneSliceConst = SliceConstant(slicetype, slice(None), "slice(None)")


class MakeSlice(Op):
    """The slice of a start, a stop and a step, each a whole number or None. Raises TypeError for others."""

    __props__ = ()

    def make_node(self, start: Any, stop: Any = None, step: Any = None) -> Apply:
        bounds = (start.start, start.stop, start.step) if isinstance(start, slice) else (start, stop, step)
        return Apply(self, list(map(_bound, bounds)), [slicetype.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = _of_ints(*inputs)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None] * len(inputs)


make_slice = MakeSlice()


def as_symbolic(x: Any, name: str | None = None, **options: Any) -> Any:
    """Return `x` as a variable, named `name` if it is a new one: None and slices, which may have variables
    for bounds, as what they are, anything else as a tensor, by the `options` of `as_tensor_variable`."""
    if isinstance(x, Variable):
        return variable_of(x)
    if x is None:
        return NoneConst
    if not isinstance(x, slice):
        return as_tensor_variable(x, name, **options)
    has_variables = any(isinstance(bound, Variable) for bound in (x.start, x.stop, x.step))
    found = make_slice(x) if has_variables else slicetype.make_constant(x)
    found.name = name
    return found


def _bound(value: Any) -> Any:
    if value is None or NoneConst.equals(value):
        return NoneConst
    bound = as_tensor_variable(value)
    if bound.type.dtype not in INTEGERS or bound.type.ndim:
        raise TypeError(f"Making a slice: its bound {value} must be a whole number or None")
    return bound
