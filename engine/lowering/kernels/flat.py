"""Flat kernels: one loop over a range that stores arrays, reduces to numbers, and adds to elements of arrays.

Arguments: inputs, the extent, strides of strided inputs, and outputs: first the arrays, then the numbers,
then the arrays that are added to. The loop runs in blocks. In each block, everything is computed first, in
vectors; values to add are kept, and added one by one behind that. An array that is added to is no input and
no other output.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from engine.lowering.kernels.building import KernelBuilder, constant
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import Axis, Fused, NestOperand, contiguous_terms, declare, end_of
from engine.lowering.kernels.reduction_nest import OPERATIONS, neutral_element
from engine.lowering.kernels.row_reduction import BLOCK
from engine.lowering.loops import (
    Array,
    Carried,
    Compute,
    If,
    Kernel,
    Loop,
    Node,
    Number,
    Place,
    ReadElement,
    WriteElement,
)
from engine.lowering.operations import FLOATS
from engine.lowering.statements import Ref, ScalarRepeat, Statement

ADDING_BLOCK = 1024
"""Passes of a block where values are kept to be added: those of three arrays stay in the fastest cache.

With a reduction there are BLOCK: its partial results, and so its bits, are those of a loop without additions.
"""


class Addition(Struct, frozen=True):
    """An array of `dtype` to which each pass adds the value `ref` at an index.

    `index` is an input of integers within the array, `from_end` one with the number that is added to
    negative ones, an int64; it is 0 if there are none.
    """

    ref: Ref
    index: int
    from_end: int
    dtype: str


def flat(
    inputs: Sequence[NestOperand],
    body: Sequence[Statement | ScalarRepeat],
    outputs: Sequence[Ref],
    reductions: Sequence[tuple[str, Ref, str, str]],
    additions: Sequence[Addition] = (),
) -> Kernel:
    """Return the kernel of one loop: it stores `outputs`, computes `reductions` and makes `additions`.

    Each reduction is a kind (sum, all, any, or prod of integers), the reduced value, the dtype that it is
    accumulated in and that of its result. Every input has one dim.
    """
    if not reductions and not additions:
        return elementwise(inputs, body, outputs, 1)
    return _flat(tuple(inputs), tuple(body), tuple(outputs), tuple(reductions), tuple(additions))


@lru_cache(maxsize=1024)
def _flat(
    inputs: tuple[NestOperand, ...],
    body: tuple[Statement | ScalarRepeat, ...],
    outputs: tuple[Ref, ...],
    reductions: tuple[tuple[str, Ref, str, str], ...],
    additions: tuple[Addition, ...],
) -> Kernel:
    casts = [Statement("cast", (ref,), accumulator) for _, ref, accumulator, _ in reductions]
    axes = (Axis((0,), "i0", "n0"),)
    fused = Fused(inputs, (*body, *casts), axes, axes)
    builder = KernelBuilder()
    declare(builder, inputs, axes)
    stored: list[Node] = []
    for number, ref in enumerate(outputs):
        pointer = builder.pointer(f"y{number}", fused.dtype(ref), ("output", number))
        stored.append(WriteElement(Place(pointer, contiguous_terms(axes)), fused.name(ref)))
    sums = _FlatReductions(fused, builder, len(outputs), len(body), reductions)
    size = ADDING_BLOCK if additions and not reductions else BLOCK
    adding = _Adding(fused, builder, len(outputs) + len(reductions), additions, size)
    each = (*fused.nodes(1), *stored, *sums.each, *adding.keeping())
    block = (
        *end_of("block", "block_size", "n0"),
        Loop("i0", "block", "block_end", 1, each, tuple(sums.carried), independent=True),
        *sums.ends,
        *adding.loops(),
    )
    nodes = (
        constant("block_size", "int64", size),
        *sums.neutral,
        *adding.arrays(),
        *fused.nodes(0),
        Loop("block", 0, "n0", size, block, tuple(sums.totals)),
        *sums.results,
    )
    summary = _summary(fused, len(outputs), reductions, body, len(additions))
    return builder.kernel((*fused.constants(), *nodes), summary)


def _summary(
    fused: Fused,
    outputs: int,
    reductions: Sequence[tuple[str, Ref, str, str]],
    body: Sequence[Statement | ScalarRepeat],
    additions: int,
) -> str:
    parts = [*[kind for kind, *_ in reductions], *["addition"] * additions]
    operations = ", ".join(str(statement.op) for statement in body)
    types = ", ".join(operand.dtype + " strided" * operand.strided for operand in fused.operands)
    return f"{', '.join(parts)} and {outputs} arrays of {operations}: ({types})"


class _FlatReductions:
    """The nodes of reductions: in `each` pass, at the `ends` of blocks, and behind the loop (`results`)."""

    def __init__(
        self,
        fused: Fused,
        builder: KernelBuilder,
        first_output: int,
        first_cast: int,
        reductions: Sequence[tuple[str, Ref, str, str]],
    ) -> None:
        self.neutral: list[Node] = []
        self.totals: list[Carried] = []
        self.carried: list[Carried] = []
        self.each: list[Node] = []
        self.ends: list[Node] = []
        self.results: list[Node] = []
        for k, (kind, _, accumulator, result) in enumerate(reductions):
            pointer = builder.pointer(f"z{k}", result, ("output", first_output + k))
            reduced = fused.name(("value", first_cast + k))
            op, in_any_order = OPERATIONS[kind], accumulator in FLOATS and kind == "sum"
            self.neutral.append(Number(f"neutral{k}", accumulator, neutral_element(kind, accumulator)))
            self.totals.append(Carried(f"total{k}", f"neutral{k}", f"total_next{k}"))
            self.carried.append(Carried(f"sum{k}", f"neutral{k}", f"sum_next{k}", in_any_order))
            self.each.append(Compute(f"sum_next{k}", op, (f"sum{k}", reduced), accumulator))
            self.ends.append(Compute(f"total_next{k}", op, (f"total{k}", f"sum{k}"), accumulator))
            self.results.append(Compute(f"result{k}", "cast", (f"total{k}",), result))
            self.results.append(WriteElement(Place(pointer), f"result{k}"))


class _Adding:
    """The nodes of additions: values are kept in the loop of a block, and added in loops behind it."""

    def __init__(
        self,
        fused: Fused,
        builder: KernelBuilder,
        first_output: int,
        additions: Sequence[Addition],
        size: int,
    ) -> None:
        self.fused = fused
        self.additions = additions
        self.size = size
        self.kept: dict[Ref, str] = {}
        for k, addition in enumerate(additions):
            builder.pointer(f"w{k}", addition.dtype, ("output", first_output + k))
            if not self._is_read(addition.ref):
                self.kept.setdefault(addition.ref, f"kept{len(self.kept)}")

    def _is_read(self, ref: Ref) -> bool:
        """Return True if `ref` is an element of a contiguous array, which can be read when it is added."""
        operand = self.fused.operands[ref[1]] if ref[0] == "input" else None
        return operand is not None and not (operand.strided or operand.broadcast[0])

    def arrays(self) -> tuple[Node, ...]:
        """Return the arrays of values that are kept, and the constant that `loops` needs."""
        if not self.additions:
            return ()
        arrays = [Array(name, self.fused.dtype(ref), self.size) for ref, name in self.kept.items()]
        return (constant("none", "int64", 0), *arrays)

    def keeping(self) -> tuple[Node, ...]:
        """Return the nodes that keep the values of a pass."""
        if not self.kept:
            return ()
        place = (("position",),)
        writes = [WriteElement(Place(name, place), self.fused.name(ref)) for ref, name in self.kept.items()]
        return (Compute("position", "sub", ("i0", "block"), "int64"), *writes)

    def loops(self) -> tuple[Node, ...]:
        """Return the loops that add the values of a block, one for each index and length that it is of."""
        nodes: list[Node] = []
        for number, ((index, from_end), numbers) in enumerate(self._by_index().items()):
            name = self.fused.name(("input", from_end))
            plain = self._loop(index, numbers, f"_p{number}", "")
            wrapped = self._loop(index, numbers, f"_w{number}", name)
            nodes.append(Compute(f"is_plain{number}", "eq", (name, "none"), "bool"))
            nodes.append(If(f"is_plain{number}", (plain,), (wrapped,)))
        return tuple(nodes)

    def _by_index(self) -> dict[tuple[int, int], list[int]]:
        """Return the numbers of the additions by their inputs `index` and `from_end`."""
        found: dict[tuple[int, int], list[int]] = {}
        for number, addition in enumerate(self.additions):
            found.setdefault((addition.index, addition.from_end), []).append(number)
        return found

    def _loop(self, index: int, numbers: Sequence[int], suffix: str, from_end: str) -> Loop:
        """Return the loop of additions at the input `index`; `from_end`, if given, is added to negatives."""
        at, wanted = f"at{suffix}", f"wanted{suffix}"
        nodes: list[Node] = [
            ReadElement(f"loaded{suffix}", Place(f"x{index}", ((at,),))),
            Compute(wanted, "cast", (f"loaded{suffix}",), "int64"),
        ]
        if self.kept:
            nodes.append(Compute(f"position{suffix}", "sub", (at, "block"), "int64"))
        place = wanted
        if from_end:
            place = f"place{suffix}"
            nodes.append(Compute(f"is_negative{suffix}", "lt", (wanted, "none"), "bool"))
            nodes.append(Compute(f"wrapped{suffix}", "add", (wanted, from_end), "int64"))
            chosen = (f"is_negative{suffix}", f"wrapped{suffix}", wanted)
            nodes.append(Compute(place, "where", chosen, "int64"))
        for number in numbers:
            nodes += self._added(number, self.additions[number], at, place, suffix)
        return Loop(at, "block", "block_end", 1, tuple(nodes))

    def _added(self, k: int, addition: Addition, at: str, place: str, suffix: str) -> tuple[Node, ...]:
        value, before, after = (f"{name}{k}{suffix}" for name in ("value", "before", "after"))
        kept = self.kept.get(addition.ref)
        source = Place(f"x{addition.ref[1]}", ((at,),))
        if kept is not None:
            source = Place(kept, ((f"position{suffix}",),))
        target = Place(f"w{k}", ((place,),))
        return (
            ReadElement(value, source),
            ReadElement(before, target),
            Compute(after, "add", (before, value), addition.dtype),
            WriteElement(target, after),
        )
