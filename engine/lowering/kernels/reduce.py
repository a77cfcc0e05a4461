"""Reductions over some dims of a nest, with scalar statements fused in front of them.

Arguments: inputs, extents, strides of strided inputs, and output 0, which is C-contiguous over the kept
dims. The order of the loops depends on the dim that is innermost in memory:

- It is reduced: each element of the output is finished before the next. Sums of floats are computed in
  blocks of BLOCK elements, in partial results side by side within a block. The rounding error grows at
  most with BLOCK plus the number of blocks, not with the number of elements. Products are computed in
  turn, as numpy's: a partial product of other elements may overflow where theirs does not.
- It is kept: TILE neighbouring elements of the output are accumulated together, so that memory is read in
  its order, more than a page at a time. A sum then adds element by element, as numpy's does along an outer
  axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from engine.lowering.kernels.building import KernelBuilder, constant, number_bytes
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import Axis, Fused, NestOperand, collapse, contiguous_terms, declare, end_of
from engine.lowering.loops import (
    ROW_PRODUCTS,
    ROWS_OF_PRODUCTS,
    Address,
    Array,
    Call,
    Carried,
    Compute,
    Fail,
    If,
    Kernel,
    Loop,
    Node,
    Number,
    Place,
    ReadElement,
    Word,
    WriteElement,
)
from engine.lowering.operations import FLOATS
from engine.lowering.statements import Ref, ScalarRepeat, Statement
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import EMPTY_REDUCTION
from engine.scalar.promotion import integer_range

BLOCK = 2048
TILE = 2048
TOGETHER = 2
"""Rows that are accumulated together."""
PARTS, PART = 4, 4096
"""Parts of a block that are read side by side for an extreme, and their elements (decisions 0164, 0171)."""

OPERATIONS = {
    "sum": "add",
    "prod": "mul",
    "max": "maximum",
    "min": "minimum",
    "all": "and_",
    "any": "or_",
}
_OF_NUMBERS = {"max": "maximum_of_numbers", "min": "minimum_of_numbers"}
_COUNTS = {"float64": "int64", "float32": "int32"}
"""The integers that count the NaNs of a block: as wide as the floats, so that a vector has as many."""


def reduction(
    kind: str,
    inputs: Sequence[NestOperand],
    body: Sequence[Statement | ScalarRepeat],
    reduced: Ref,
    rank: int,
    dims: Sequence[int],
    accumulator: str,
    result: str,
    from_neutral: bool = False,
    is_short: bool = False,
) -> Kernel:
    """Return the kernel that reduces `reduced`, a value of `body`, over `dims` of a nest of `rank` dims.

    `kind` is sum, prod, max, min, all or any (the last two of bools). Each element is cast to the dtype
    `accumulator`, the outcome to the dtype `result`. max and min pass NaN on. Over no elements they
    return EMPTY_REDUCTION (even if the output is empty, as in numpy), unless they start `from_neutral`;
    the others give their neutral element. If the reduction `is_short`, over few elements, the kernel is the
    simplest: one element at a time. Raises InvalidKernel if the description contradicts itself.
    """
    checked = kind in ("max", "min") and not from_neutral
    over = frozenset(dims)
    return _reduction(
        kind, tuple(inputs), tuple(body), reduced, rank, over, accumulator, result, checked, is_short
    )


@lru_cache(maxsize=1024)
def _reduction(
    kind: str,
    inputs: tuple[NestOperand, ...],
    body: tuple[Statement | ScalarRepeat, ...],
    reduced: Ref,
    rank: int,
    over: frozenset[int],
    accumulator: str,
    result: str,
    refuses_empty: bool,
    is_short: bool,
) -> Kernel:
    if kind not in OPERATIONS or not over <= set(range(rank)):
        raise InvalidKernel(
            "building", f"a {kind} over dims {tuple(sorted(over))}", f"the nest has {rank} dims"
        )
    statements: list[Statement | ScalarRepeat] = [*body, Statement("cast", (reduced,), accumulator)]
    if not over:
        statements.append(Statement("cast", (("value", len(body)),), result))
        return elementwise(inputs, statements, [("value", len(statements) - 1)], rank)
    axes = collapse(inputs, rank, [dim in over for dim in range(rank)])
    kept = tuple(axis for axis in axes if axis.dims[0] not in over)
    gone = tuple(axis for axis in axes if axis.dims[0] in over)
    by_column = axes[-1] in kept
    order = (*kept[:-1], *gone, kept[-1]) if by_column else kept + gone
    fused = Fused(inputs, statements, order, axes)
    plan = _ReductionNest(kind, fused, kept, gone, accumulator, result, is_short)
    builder = KernelBuilder()
    declare(builder, inputs, axes)
    builder.pointer("y", result, ("output", 0))
    nest = plan.columns() if by_column else plan.rows()
    check = plan.empty_check() if refuses_empty else ()
    nodes = (*plan.constants(), *check, *nest)
    return builder.kernel(nodes, plan.summary())


class _ReductionNest(Struct, frozen=True):
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

    @property
    def has_parts(self) -> bool:
        """True for an extreme that is found in parts of a block."""
        return self.is_plain and self.accumulator in FLOATS and self.kind in _OF_NUMBERS

    @property
    def block(self) -> int:
        """The elements of a block."""
        return PARTS * PART if self.has_parts else BLOCK

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

    # ---- the innermost dim is reduced

    def rows(self) -> tuple[Node, ...]:
        if self.is_plain and len(self.kept) == 1 and self.kind == "prod":
            function = f"row_products_{self.fused.operands[0].dtype}_{self.accumulator}"
            if function in ROW_PRODUCTS:
                return self.products_side_by_side(function)
        depth = self.fused.depth - 1
        initial = "neutral" if depth == len(self.kept) else f"total{depth - 1}"
        inner, total = self.innermost(initial)
        for outer in reversed(range(len(self.kept), depth)):
            inner, total = self.outer_loop(outer, inner, total)
        return (
            constant("block_size", "int64", self.block),
            *self.nest(self.kept, 0, inner + self.store(total)),
        )

    def innermost(self, initial: str) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop, which begins with `initial`, and the name of its total."""
        if self.accumulator in FLOATS and self.kind == "sum":
            each = (self.combine("following", "accumulated", self.fused.name(self.reduced)),)
            carried = Carried("accumulated", "neutral", "following", True)
            return self.in_blocks(initial, (self.along_block(each, (carried,)),), "accumulated")
        if self.accumulator in FLOATS and self.kind in _OF_NUMBERS and not self.is_short:
            return self.extreme_in_blocks(initial)
        return self.in_turn(initial)

    def outer_loop(self, depth: int, inner: tuple[Node, ...], total: str) -> tuple[tuple[Node, ...], str]:
        """Return a loop over a reduced axis around `inner`, and the name of its total."""
        axis, name = self.fused.axes[depth], f"total{depth}"
        initial = "neutral" if depth == len(self.kept) else f"total{depth - 1}"
        loop = Loop(axis.index, 0, axis.extent, 1, inner, (Carried(name, initial, total),))
        return (*self.fused.nodes(depth), loop), name

    def in_turn(self, initial: str) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop, element by element, and the name of its total."""
        depth, axis = self.fused.depth, self.gone[-1]
        body = (
            *self.fused.nodes(depth),
            self.combine("following", "accumulated", self.fused.name(self.reduced)),
        )
        loop = Loop(axis.index, 0, axis.extent, 1, body, (Carried("accumulated", initial, "following"),))
        return (*self.fused.nodes(depth - 1), loop), "accumulated"

    def in_blocks(self, initial: str, block: tuple[Node, ...], found: str) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop, block by block, and its total's name; `block` computes `found`."""
        body = (
            *end_of("block", "block_size", self.gone[-1].extent),
            *block,
            self.combine("blocks_next", "blocks", found),
        )
        carried = (Carried("blocks", initial, "blocks_next"),)
        blocks = Loop("block", 0, self.gone[-1].extent, self.block, body, carried)
        return (*self.fused.nodes(self.fused.depth - 1), blocks), "blocks"

    def along_block(self, accumulate: tuple[Node, ...], carried: tuple[Carried, ...]) -> Loop:
        """Return the loop along a block that reads and computes an element in each pass."""
        each = (*self.fused.nodes(self.fused.depth), *accumulate)
        return Loop(self.gone[-1].index, "block", "block_end", 1, each, carried)

    def extreme_in_blocks(self, initial: str) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop of an extreme of floats: its NaNs are counted beside it."""
        count = _COUNTS[self.accumulator]
        block = (
            *(self.extreme_of_parts() if self.has_parts else self.extreme_in_turn()),
            Compute("are_nans", "neq", ("all_nans", "no_nans"), "bool"),
            Compute("extreme", "where", ("are_nans", "nan", "all_numbers"), self.accumulator),
        )
        numbers = constant("no_nans", count, 0), constant("nan", self.accumulator, math.nan)
        inner, total = self.in_blocks(initial, block, "extreme")
        return (*numbers, *inner), total

    def extreme_in_turn(self) -> tuple[Node, ...]:
        """Return the loop along a block that finds `all_numbers`, the extreme, and counts `all_nans`."""
        value = self.fused.name(self.reduced)
        each = (
            self.of_numbers("following", "all_numbers", value),
            Compute("is_nan", "isnan", (value,), "bool"),
            *self.counted("following_nans", "all_nans", "is_nan"),
        )
        carried = (
            Carried("all_numbers", "neutral", "following"),
            Carried("all_nans", "no_nans", "following_nans"),
        )
        return (self.along_block(each, carried),)

    def extreme_of_parts(self) -> tuple[Node, ...]:
        """Return the nodes of `all_numbers` and `all_nans` of a plain array, whose block has PARTS parts.

        Parts are of one length. They may overlap, which changes no extreme. LLVM sees the NaNs of two
        elements by one comparison.
        """
        each: list[Node] = []
        for n in range(PARTS):
            each += self.part_element(n)
            each.append(self.of_numbers(f"following{n}", f"numbers{n}", f"value{n}"))
        carried = [Carried(f"numbers{n}", "neutral", f"following{n}") for n in range(PARTS)]
        for n in range(0, PARTS, 2):
            each.append(Compute(f"is_nan{n}", "or_", (f"value{n}_is_nan", f"value{n + 1}_is_nan"), "bool"))
            each += self.counted(f"following_nans{n}", f"nans{n}", f"is_nan{n}")
            carried.append(Carried(f"nans{n}", "no_nans", f"following_nans{n}"))
        along = Loop("in_part", 0, "part_size", 1, tuple(each), tuple(carried), interleaved=False)
        return (*self.parts(), along, *self.joined_parts())

    def parts(self) -> tuple[Node, ...]:
        """Return the nodes of `part_size` and of each part's first element, `part0` and so on."""
        nodes: list[Node] = [
            constant("parts", "int64", PARTS),
            constant("parts_less_one", "int64", PARTS - 1),
            Compute("block_length", "sub", ("block_end", "block"), "int64"),
            Compute("rounded_length", "add", ("block_length", "parts_less_one"), "int64"),
            Compute("part_size", "floor_div", ("rounded_length", "parts"), "int64"),
            Compute("last_part", "sub", ("block_end", "part_size"), "int64"),
            Compute("part0", "identity", ("block",), "int64"),
        ]
        for n in range(1, PARTS):
            nodes.append(Compute(f"part{n}_full", "add", (f"part{n - 1}", "part_size"), "int64"))
            nodes.append(Compute(f"part{n}", "minimum", (f"part{n}_full", "last_part"), "int64"))
        return tuple(nodes)

    def part_element(self, part: int) -> tuple[Node, ...]:
        """Return the nodes of an element of a part, `value0` and so on."""
        (cast,), place = self.fused.statements, self.fused.place(0)
        index, at, value = self.gone[-1].index, f"at{part}", f"value{part}"
        terms = tuple([_renamed(term, index, at) for term in place.terms])
        return (
            Compute(at, "add", (f"part{part}", "in_part"), "int64"),
            ReadElement(f"element{part}", Place(place.pointer, terms)),
            Compute(value, cast.op, (f"element{part}",), self.accumulator),
            Compute(f"{value}_is_nan", "isnan", (value,), "bool"),
        )

    def joined_parts(self) -> tuple[Node, ...]:
        """Return the nodes of `all_numbers` and `all_nans` of the parts of a block."""
        count = _COUNTS[self.accumulator]
        return (
            self.of_numbers("numbers01", "numbers0", "numbers1"),
            self.of_numbers("numbers23", "numbers2", "numbers3"),
            self.of_numbers("all_numbers", "numbers01", "numbers23"),
            Compute("all_nans", "add", ("nans0", "nans2"), count),
        )

    def of_numbers(self, target: str, left: str, right: str) -> Compute:
        """Return the extreme of two numbers; of a NaN and a number it may be either."""
        return Compute(target, _OF_NUMBERS[self.kind], (left, right), self.accumulator)

    def counted(self, target: str, before: str, is_nan: str) -> tuple[Node, ...]:
        count = _COUNTS[self.accumulator]
        return (
            Compute(f"{target}_one", "cast", (is_nan,), count),
            Compute(target, "add", (before, f"{target}_one"), count),
        )

    # ---- products of rows

    def products_side_by_side(self, function: str) -> tuple[Node, ...]:
        """Return the loop over ROWS_OF_PRODUCTS rows at a time. `function` leaves out an odd last column."""
        (row,), (column,) = self.kept, self.gone
        element = Place("x0", (("finished", column.extent), (column.index,)))
        last = (
            ReadElement("element", element),
            Compute("factor", "cast", ("element",), self.accumulator),
            self.combine("following", "product", "factor"),
        )
        finish = (
            Compute("position", "sub", ("finished", row.index), "int64"),
            ReadElement("found", Place("products", (("position",),))),
            Loop(column.index, "even", column.extent, 1, last, (Carried("product", "found", "following"),)),
            Compute("result", "cast", ("product",), self.result),
            WriteElement(Place("y", (("finished",),)), "result"),
        )
        first = Address(Place("x0", ((row.index, column.extent),)))
        arguments = first, Word(column.extent), Word("rows_left"), Address(Place("products"))
        rows = (
            *end_of(row.index, "together", row.extent),
            Compute("rows_left", "sub", (row.extent, row.index), "int64"),
            Call(function, arguments),
            Loop("finished", row.index, f"{row.index}_end", 1, finish),
        )
        return (
            constant("together", "int64", ROWS_OF_PRODUCTS),
            constant("all_but_last_bit", "int64", -2),
            Compute("even", "and_", (column.extent, "all_but_last_bit"), "int64"),
            Array("products", self.accumulator, ROWS_OF_PRODUCTS),
            Loop(row.index, 0, row.extent, ROWS_OF_PRODUCTS, rows),
        )

    # ---- the innermost dim is kept

    def columns(self) -> tuple[Node, ...]:
        outer, column = self.kept[:-1], self.kept[-1]
        walk = self.rows_together() if self.is_plain else self.row_by_row()
        accumulated = Array("accumulated", self.accumulator, TILE)
        tiles = Loop("tile", 0, column.extent, TILE, (accumulated, *self.tile(walk)))
        hoisted = self.fused.nodes(len(outer))
        return (
            constant("tile_size", "int64", TILE),
            *self.nest(outer, 0, (*hoisted, tiles)),
        )

    def row_by_row(self) -> tuple[Node, ...]:
        """Return the loops over the reduced axes, which accumulate a tile of each row."""
        depth, first = self.fused.depth, len(self.kept) - 1
        values = (*self.fused.nodes(depth), self.combine("after0", "before", self.fused.name(self.reduced)))
        walk = (*self.fused.nodes(depth - 1), self.along_tile(values, "after0"))
        for at in reversed(range(first, depth - 1)):
            axis = self.fused.axes[at]
            hoisted = self.fused.nodes(at) if at > first else ()
            walk = (*hoisted, Loop(axis.index, 0, axis.extent, 1, walk))
        return walk

    def rows_together(self) -> tuple[Node, ...]:
        """Return the loop over TOGETHER rows at a time, which reads and writes a tile's totals once for all.

        The last rows may be fewer: for others the last one is read, and the neutral element taken.
        """
        (cast,), (axis,), operand = self.fused.statements, self.gone, self.fused.place(0)
        rows: list[Node] = []
        values: list[Node] = []
        for n in range(TOGETHER):
            rows.append(constant(f"behind{n}", "int64", n))
            rows.append(Compute(f"full_row{n}", "add", (axis.index, f"behind{n}"), "int64"))
            rows.append(Compute(f"row{n}", "minimum", (f"full_row{n}", "last_row"), "int64"))
            rows.append(Compute(f"is_row{n}", "lt", (f"full_row{n}", axis.extent), "bool"))
            terms = tuple([(_renamed(term, axis.index, f"row{n}")) for term in operand.terms])
            values.append(ReadElement(f"element{n}", Place("x0", terms)))
            values.append(Compute(f"value{n}", cast.op, (f"element{n}",), self.accumulator))
            chosen = (f"is_row{n}", f"value{n}", "neutral")
            values.append(Compute(f"chosen{n}", "where", chosen, self.accumulator))
            values.append(self.combine(f"after{n}", f"after{n - 1}" if n else "before", f"chosen{n}"))
        along = self.along_tile(tuple(values), f"after{TOGETHER - 1}")
        return (
            constant("one", "int64", 1),
            Compute("last_row", "sub", (axis.extent, "one"), "int64"),
            Loop(axis.index, 0, axis.extent, TOGETHER, (*rows, along)),
        )

    def along_tile(self, values: tuple[Node, ...], after: str) -> Loop:
        """Return the loop along a tile in which `values` make the total `after` of `before`."""
        column, place = self.kept[-1], Place("accumulated", (("position",),))
        accumulate = (
            Compute("position", "sub", (column.index, "tile"), "int64"),
            ReadElement("before", place),
            *values,
            WriteElement(place, after),
        )
        return Loop(column.index, "tile", "tile_end", 1, accumulate, independent=True)

    def tile(self, walk: tuple[Node, ...]) -> tuple[Node, ...]:
        column = self.kept[-1]
        finished = Axis(column.dims, "finished", column.extent)
        terms = contiguous_terms((*self.kept[:-1], finished))
        finish = (
            Compute("finished_position", "sub", ("finished", "tile"), "int64"),
            ReadElement("total", Place("accumulated", (("finished_position",),))),
            Compute("result", "cast", ("total",), self.result),
            WriteElement(Place("y", terms), "result"),
        )
        return (
            *end_of("tile", "tile_size", column.extent),
            Compute("tile_width", "sub", ("tile_end", "tile"), "int64"),
            Loop(
                "cleared",
                0,
                "tile_width",
                1,
                (WriteElement(Place("accumulated", (("cleared",),)), "neutral"),),
            ),
            *walk,
            Loop("finished", "tile", "tile_end", 1, finish),
        )


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


def _renamed(term: tuple[str, ...], name: str, new: str) -> tuple[str, ...]:
    return tuple([new if factor == name else factor for factor in term])


def _product(target: str, axes: Sequence[Axis]) -> tuple[Node, ...]:
    nodes: list[Node] = [constant(f"{target}0", "int64", 1)]
    for n, axis in enumerate(axes):
        nodes.append(Compute(f"{target}{n + 1}", "mul", (f"{target}{n}", axis.extent), "int64"))
    return (*nodes, Compute(target, "identity", (f"{target}{len(axes)}",), "int64"))
