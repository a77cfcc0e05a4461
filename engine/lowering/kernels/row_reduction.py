"""Reductions whose innermost axis in memory is reduced: one element of the output after the other.

Sums of floats are computed in blocks of BLOCK elements, in partial results side by side within a block. A
long plain array is read in PARTS parts side by side, as for extremes, and so are PARTS long rows of a plain
matrix. The rounding error grows at most with the length of a part plus the number of blocks, not with the
number of elements. Products are computed in turn, as numpy's: a partial product of other elements may
overflow where theirs does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.lowering.kernels.building import constant
from engine.lowering.kernels.nest import end_of
from engine.lowering.kernels.reduction_nest import ReductionNest, renamed
from engine.lowering.loops import (
    COLUMNS_OF_PRODUCTS,
    ROW_PRODUCTS,
    ROWS_OF_PRODUCTS,
    Address,
    Array,
    Bound,
    Call,
    Carried,
    Compute,
    Loop,
    Node,
    Place,
    ReadElement,
    Word,
    WriteElement,
)
from engine.lowering.operations import FLOATS

BLOCK = 2048
PARTS, PART = 4, 4096
"""Parts of a block that are read side by side, and their elements (decisions 0164, 0171, 0187)."""
ROWS_OF_EXTREMES = 6
"""Rows whose extremes are found side by side: with AVX2, registers hold no more (decision 0207)."""
ROW_PART = 1024
"""Elements of each of PARTS rows that are added up side by side."""

_OF_NUMBERS = {"max": "maximum_of_numbers", "min": "minimum_of_numbers"}
_COUNTS = {"float64": "int64", "float32": "int32"}
"""The integers that count the NaNs of a block: as wide as the floats, so that a vector has as many."""


class RowReduction(ReductionNest, frozen=True):
    """A reduction whose innermost axis is reduced."""

    @property
    def has_parts(self) -> bool:
        """True for an extreme that is found in parts of a block."""
        return self.is_plain and self.accumulator in FLOATS and self.kind in _OF_NUMBERS

    @property
    def block(self) -> int:
        """The elements of a block."""
        return PARTS * PART if self.has_parts else BLOCK

    def loops(self) -> tuple[Node, ...]:
        if self.is_plain and len(self.kept) == 1 and self.kind == "prod":
            function = f"row_products_{self.fused.operands[0].dtype}_{self.accumulator}"
            if function in ROW_PRODUCTS:
                return self.products_side_by_side(function)
        block_size = constant("block_size", "int64", self.block)
        if self.is_plain and len(self.kept) == 1 and self.kind == "sum" and self.accumulator in FLOATS:
            return (block_size, *self.sums_of_rows_together())
        if self.has_parts and len(self.kept) == 1:
            return (block_size, *self.extremes_of_rows_together())
        depth = self.fused.depth - 1
        initial = "neutral" if depth == len(self.kept) else f"total{depth - 1}"
        inner, total = self.innermost(initial)
        for outer in reversed(range(len(self.kept), depth)):
            inner, total = self.outer_loop(outer, inner, total)
        return (
            block_size,
            *self.nest(self.kept, 0, inner + self.store(total)),
        )

    def innermost(self, initial: str) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop, which begins with `initial`, and the name of its total."""
        if self.accumulator in FLOATS and self.kind == "sum":
            if self.is_plain:
                return self.sum_in_parts(initial)
            return self.in_blocks(initial, *self.sum_along_block())
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

    def in_blocks(
        self, initial: str, block: tuple[Node, ...], found: str, start: Bound = 0
    ) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop from `start`, block by block, and its total's name.

        `block` computes `found`.
        """
        body = (
            *end_of("block", "block_size", self.gone[-1].extent),
            *block,
            self.combine("blocks_next", "blocks", found),
        )
        carried = (Carried("blocks", initial, "blocks_next"),)
        blocks = Loop("block", start, self.gone[-1].extent, self.block, body, carried)
        return (*self.fused.nodes(self.fused.depth - 1), blocks), "blocks"

    def along_block(self, accumulate: tuple[Node, ...], carried: tuple[Carried, ...]) -> Loop:
        """Return the loop along a block that reads and computes an element in each pass."""
        each = (*self.fused.nodes(self.fused.depth), *accumulate)
        return Loop(self.gone[-1].index, "block", "block_end", 1, each, carried)

    def sum_in_parts(self, initial: str) -> tuple[tuple[Node, ...], str]:
        """Return the loops of the sum of a plain array, and its total's name.

        The parts of whole blocks are read side by side. What is left is less than PARTS parts.
        """
        starts = [Compute(f"part{n}", "add", ("whole", f"behind{n}"), "int64") for n in range(PARTS)]
        whole: tuple[Node, ...] = (
            *starts,
            self.side_by_side([self.part_element(n) for n in range(PARTS)]),
            self.combine("sum01", "sum0", "sum1"),
            self.combine("sum23", "sum2", "sum3"),
            self.combine("all_parts", "sum01", "sum23"),
            self.combine("whole_next", "whole_total", "all_parts"),
        )
        of_whole = Carried("whole_total", initial, "whole_next")
        rest, total = self.in_blocks("whole_total", *self.sum_along_block(), "whole_end")
        return (
            *self.lengths(PART, PART),
            constant("whole_blocks", "int64", -PARTS * PART),
            Compute("whole_end", "and_", (self.gone[-1].extent, "whole_blocks"), "int64"),
            Loop("whole", 0, "whole_end", PARTS * PART, whole, (of_whole,)),
            *rest,
        ), total

    def sums_of_rows_together(self) -> tuple[Node, ...]:
        """Return the loops of the sums of a plain matrix's rows: whole parts of PARTS rows side by side.

        What is left of a row is added to its sum after them, and so are all of the last rows, if they are
        fewer.
        """
        (row,), (column,) = self.kept, self.gone
        rest, total = self.in_blocks("found", *self.sum_along_block(), "whole_end")
        finish = (
            Compute("position", "sub", (row.index, "group"), "int64"),
            ReadElement("found", Place("totals", (("position",),))),
            *rest,
            *self.store(total),
        )
        together = (
            Array("totals", self.accumulator, PARTS),
            *end_of("group", "rows_together", row.extent),
            Compute("group_rows", "sub", (row.extent, "group"), "int64"),
            Compute("is_whole", "ge", ("group_rows", "rows_together"), "bool"),
            Compute("whole_end", "where", ("is_whole", "whole_parts", "no_part"), "int64"),
            *(Compute(f"row{n}", "add", ("group", f"behind{n}"), "int64") for n in range(PARTS)),
            *self.whole_parts_of_rows(),
            Loop(row.index, "group", "group_end", 1, finish),
        )
        return (
            *self.lengths(ROW_PART, 1),
            constant("rows_together", "int64", PARTS),
            constant("no_part", "int64", 0),
            constant("whole_lengths", "int64", -ROW_PART),
            Compute("whole_parts", "and_", (column.extent, "whole_lengths"), "int64"),
            Loop("group", 0, row.extent, PARTS, together),
        )

    def whole_parts_of_rows(self) -> tuple[Node, ...]:
        """Return the loop over the whole parts of PARTS rows, whose sums are in `totals` after it."""
        elements = [self.part_element(n, "whole") for n in range(PARTS)]
        part: list[Node] = [self.side_by_side(elements)]
        part += [self.combine(f"next_total{n}", f"total{n}", f"sum{n}") for n in range(PARTS)]
        carried = tuple([Carried(f"total{n}", "neutral", f"next_total{n}") for n in range(PARTS)])
        found = [WriteElement(Place("totals", ((f"behind{n}",),)), f"total{n}") for n in range(PARTS)]
        return (Loop("whole", 0, "whole_end", ROW_PART, tuple(part), carried), *found)

    def lengths(self, part: int, apart: int) -> tuple[Node, ...]:
        """Return the constants `part_size` and, `apart` from one another, `behind0` and so on."""
        return (
            constant("part_size", "int64", part),
            *(constant(f"behind{n}", "int64", n * apart) for n in range(PARTS)),
        )

    def side_by_side(self, elements: Sequence[tuple[Node, ...]]) -> Loop:
        """Return the loop along parts whose `elements` are `value0` and so on; their sums are `sum0`..."""
        each: list[Node] = []
        for n, nodes in enumerate(elements):
            each += [*nodes, self.combine(f"following{n}", f"sum{n}", f"value{n}")]
        carried = tuple([Carried(f"sum{n}", "neutral", f"following{n}", True) for n in range(len(elements))])
        return Loop("in_part", 0, "part_size", 1, tuple(each), carried, interleaved=False)

    def sum_along_block(self) -> tuple[tuple[Node, ...], str]:
        """Return the loop of the sum of a block, and that sum's name."""
        each = (self.combine("following", "accumulated", self.fused.name(self.reduced)),)
        carried = Carried("accumulated", "neutral", "following", True)
        return (self.along_block(each, (carried,)),), "accumulated"

    def extreme_in_blocks(self, initial: str) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop of an extreme of floats: its NaNs are counted beside it."""
        inner, total = self.extreme_of_blocks(initial)
        return (*self.numbers_of_nans(), *inner), total

    def numbers_of_nans(self) -> tuple[Node, ...]:
        """Return the constants that extremes of floats need: NaN, and how many NaNs there are at first."""
        no_nans = constant("no_nans", _COUNTS[self.accumulator], 0)
        return no_nans, constant("nan", self.accumulator, math.nan)

    def extreme_of_blocks(self, initial: str, start: Bound = 0) -> tuple[tuple[Node, ...], str]:
        """Return the loop over the blocks of an extreme of floats from `start`, and its total's name."""
        block: tuple[Node, ...] = (
            *(self.extreme_of_parts() if self.has_parts else self.extreme_in_turn()),
            Compute("are_nans", "neq", ("all_nans", "no_nans"), "bool"),
            Compute("extreme", "where", ("are_nans", "nan", "all_numbers"), self.accumulator),
        )
        return self.in_blocks(initial, block, "extreme", start)

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
            each.append(Compute(f"value{n}_is_nan", "isnan", (f"value{n}",), "bool"))
            each.append(self.of_numbers(f"following{n}", f"numbers{n}", f"value{n}"))
        carried = [Carried(f"numbers{n}", "neutral", f"following{n}") for n in range(PARTS)]
        for n in range(0, PARTS, 2):
            each.append(Compute(f"is_nan{n}", "or_", (f"value{n}_is_nan", f"value{n + 1}_is_nan"), "bool"))
            each += self.counted(f"following_nans{n}", f"nans{n}", f"is_nan{n}")
            carried.append(Carried(f"nans{n}", "no_nans", f"following_nans{n}"))
        along = Loop("in_part", 0, "part_size", 1, tuple(each), tuple(carried), interleaved=False)
        return (*self.parts(), along, *self.joined_parts())

    def extremes_of_rows_together(self) -> tuple[Node, ...]:
        """Return the loops of the extremes of a plain matrix's rows: ROWS_OF_EXTREMES side by side.

        The last rows, if they are fewer, are read one after the other.
        """
        (row,), (column,) = self.kept, self.gone
        numbers = range(ROWS_OF_EXTREMES)
        each = [node for n in numbers for node in self.extreme_of_row(n)]
        carried = [carried for n in numbers for carried in self.carried_of_row(n)]
        rest, total = self.extreme_of_blocks("found", "whole_end")
        finish = (
            Compute("position", "sub", (row.index, "group"), "int64"),
            ReadElement("found", Place("extremes", (("position",),))),
            *rest,
            *self.store(total),
        )
        together = (
            Array("extremes", self.accumulator, ROWS_OF_EXTREMES),
            *end_of("group", "rows_together", row.extent),
            Compute("group_rows", "sub", (row.extent, "group"), "int64"),
            Compute("is_whole", "ge", ("group_rows", "rows_together"), "bool"),
            Compute("whole_end", "where", ("is_whole", column.extent, "no_column"), "int64"),
            *(Compute(f"row{n}", "add", ("group", f"behind_row{n}"), "int64") for n in numbers),
            Loop("column", 0, "whole_end", 1, tuple(each), tuple(carried), interleaved=False),
            *(node for n in numbers for node in self.found_of_row(n)),
            Loop(row.index, "group", "group_end", 1, finish),
        )
        return (
            *self.numbers_of_nans(),
            *(constant(f"behind_row{n}", "int64", n) for n in numbers),
            constant("rows_together", "int64", ROWS_OF_EXTREMES),
            constant("no_column", "int64", 0),
            Loop("group", 0, row.extent, ROWS_OF_EXTREMES, together),
        )

    def extreme_of_row(self, n: int) -> tuple[Node, ...]:
        """Return the nodes that compare the next element of row `n` of a group."""
        (cast,), place, count = self.fused.statements, self.fused.place(0), _COUNTS[self.accumulator]
        terms = [renamed(term, self.gone[0].index, "column") for term in place.terms]
        terms = [renamed(term, self.kept[0].index, f"row{n}") for term in terms]
        return (
            ReadElement(f"row_element{n}", Place(place.pointer, tuple(terms))),
            Compute(f"row_value{n}", cast.op, (f"row_element{n}",), self.accumulator),
            self.of_numbers(f"row_following{n}", f"row_numbers{n}", f"row_value{n}"),
            Compute(f"row_is_nan{n}", "isnan", (f"row_value{n}",), "bool"),
            Compute(f"row_one{n}", "cast", (f"row_is_nan{n}",), count),
            Compute(f"row_following_nans{n}", "or_", (f"row_nans{n}", f"row_one{n}"), count),
        )

    def carried_of_row(self, n: int) -> tuple[Carried, ...]:
        """Return what a pass along row `n` of a group hands on: the extreme, and 1 if there was a NaN."""
        return (
            Carried(f"row_numbers{n}", "neutral", f"row_following{n}"),
            Carried(f"row_nans{n}", "no_nans", f"row_following_nans{n}"),
        )

    def found_of_row(self, n: int) -> tuple[Node, ...]:
        """Return the nodes that keep what was found of row `n` of a group."""
        return (
            Compute(f"row_has_nans{n}", "neq", (f"row_nans{n}", "no_nans"), "bool"),
            Compute(
                f"row_extreme{n}", "where", (f"row_has_nans{n}", "nan", f"row_numbers{n}"), self.accumulator
            ),
            WriteElement(Place("extremes", ((f"behind_row{n}",),)), f"row_extreme{n}"),
        )

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

    def part_element(self, part: int, start: str = "") -> tuple[Node, ...]:
        """Return the nodes of an element of a part, `value0` and so on.

        The part begins at `part0` and so on, or in rows `row0` and so on at `start`.
        """
        (cast,), place = self.fused.statements, self.fused.place(0)
        at, value = f"at{part}", f"value{part}"
        terms = [renamed(term, self.gone[-1].index, at) for term in place.terms]
        if start:
            terms = [renamed(term, self.kept[0].index, f"row{part}") for term in terms]
        return (
            Compute(at, "add", (start or f"part{part}", "in_part"), "int64"),
            ReadElement(f"element{part}", Place(place.pointer, tuple(terms))),
            Compute(value, cast.op, (f"element{part}",), self.accumulator),
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
        """Return the loop over ROWS_OF_PRODUCTS rows at a time. `function` leaves out the last columns."""
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
            Loop(
                column.index, "whole_end", column.extent, 1, last, (Carried("product", "found", "following"),)
            ),
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
            constant("whole_lengths", "int64", -COLUMNS_OF_PRODUCTS),
            Compute("whole_end", "and_", (column.extent, "whole_lengths"), "int64"),
            Array("products", self.accumulator, ROWS_OF_PRODUCTS),
            Loop(row.index, 0, row.extent, ROWS_OF_PRODUCTS, rows),
        )
