"""The loops of a reduction over some axes of a nest, and what reductions along rows and columns share."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from engine.lowering.kernels.building import constant, number_bytes
from engine.lowering.kernels.nest import Axis, Fused, contiguous_terms
from engine.lowering.loops import Compute, Fail, If, Loop, Node, Number, Place, WriteElement
from engine.lowering.operations import FLOATS
from engine.lowering.statements import Ref
from engine.runtime.kernel_interface import EMPTY_REDUCTION
from engine.scalar.promotion import integer_range

OPERATIONS = {
    "sum": "add",
    "prod": "mul",
    "max": "maximum",
    "min": "minimum",
    "all": "and_",
    "any": "or_",
}


class ReductionNest(Struct, frozen=True):
    """A reduction of kind `kind` of a fused value over the axes `gone`, for each element of the axes `kept`.

    Each element is cast to the dtype `accumulator`, the outcome to the dtype `result`.
    """

    kind: str
    fused: Fused
    kept: tuple[Axis, ...]
    gone: tuple[Axis, ...]
    accumulator: str
    result: str
    is_short: bool

    @property
    def reduced(self) -> Ref:
        return ("value", len(self.fused.statements) - 1)

    @property
    def is_plain(self) -> bool:
        """True for a reduction of many elements of one contiguous array along one axis, as they are."""
        fused = self.fused
        is_of_one = len(fused.operands) == len(fused.statements) == len(self.gone) == 1
        operand = fused.operands[0] if is_of_one else None
        return operand is not None and not (self.is_short or operand.strided or any(operand.broadcast))

    def summary(self) -> str:
        operations = ", ".join(str(s.op) for s in self.fused.statements[:-1])
        of = f" of {operations}" if operations else ""
        inputs = ", ".join(operand.dtype + " strided" * operand.strided for operand in self.fused.operands)
        return f"{self.kind}{of}: ({inputs}) -> ({self.result}), {len(self.gone)} loops of {self.fused.depth}"

    def constants(self) -> tuple[Node, ...]:
        neutral = Number("neutral", self.accumulator, neutral_element(self.kind, self.accumulator))
        return (*self.fused.constants(), neutral)

    def empty_check(self) -> tuple[Node, ...]:
        return (
            *_product("reduced_size", self.gone),
            constant("none", "int64", 0),
            Compute("is_empty", "eq", ("reduced_size", "none"), "bool"),
            If("is_empty", (Fail(EMPTY_REDUCTION),)),
        )

    def combine(self, target: str, left: str, right: str) -> Compute:
        return Compute(target, OPERATIONS[self.kind], (left, right), self.accumulator)

    def store(self, accumulated: str) -> tuple[Node, ...]:
        cast = Compute("result", "cast", (accumulated,), self.result)
        return (cast, WriteElement(Place("y", contiguous_terms(self.kept)), "result"))

    def nest(self, axes: Sequence[Axis], first: int, inside: tuple[Node, ...]) -> tuple[Node, ...]:
        """Return loops over `axes`, the outermost at depth `first`, around `inside`."""
        for depth in reversed(range(first, first + len(axes))):
            axis = axes[depth - first]
            inside = (*self.fused.nodes(depth), Loop(axis.index, 0, axis.extent, 1, inside))
        return inside


def neutral_element(kind: str, dtype: str) -> bytes:
    """Return the little-endian bytes of the number that changes no element of `dtype` under `kind`."""
    if kind in ("max", "min"):
        lowest = kind == "max"
        if dtype in FLOATS:
            value: float = float("-inf") if lowest else float("inf")
        elif dtype == "bool":
            value = not lowest
        else:
            numbers = integer_range(dtype)
            value = numbers[0] if lowest else numbers[-1]
    else:
        value = kind in ("prod", "all")
    return number_bytes(dtype, value)


def renamed(term: tuple[str, ...], name: str, new: str) -> tuple[str, ...]:
    """Return `term` with the factor `new` in place of `name`."""
    return tuple([new if factor == name else factor for factor in term])


def _product(target: str, axes: Sequence[Axis]) -> tuple[Node, ...]:
    nodes: list[Node] = [constant(f"{target}0", "int64", 1)]
    for n, axis in enumerate(axes):
        nodes.append(Compute(f"{target}{n + 1}", "mul", (f"{target}{n}", axis.extent), "int64"))
    return (*nodes, Compute(target, "identity", (f"{target}{len(axes)}",), "int64"))
