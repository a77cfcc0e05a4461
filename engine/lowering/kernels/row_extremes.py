"""The largest or smallest of floats along rows; NaN if there is one.

Elements are compared as if all were numbers, which is faster, and NaNs are noted beside that. A long plain
array is read in PARTS parts side by side, and so are ROWS_OF_EXTREMES rows of a plain matrix.
"""

from __future__ import annotations

import math

from engine.lowering.kernels.building import constant
from engine.lowering.kernels.nest import end_of
from engine.lowering.kernels.reduction_nest import renamed
from engine.lowering.kernels.row_reduction import BLOCK, PART, PARTS, RowReduction
from engine.lowering.loops import Array, Bound, Carried, Compute, Loop, Node, Place, ReadElement, WriteElement

ROWS_OF_EXTREMES = 6
"""Rows whose extremes are found side by side: with AVX2, registers hold no more (decision 0207)."""

_OF_NUMBERS = {"max": "maximum_of_numbers", "min": "minimum_of_numbers"}
_COUNTS = {"float64": "int64", "float32": "int32"}
"""The integers that count the NaNs of a block: as wide as the floats, so that a vector has as many."""


class RowExtreme(RowReduction, frozen=True):
    """The largest or smallest of floats along the innermost axis."""

    @property
    def block(self) -> int:
        return PARTS * PART if self.is_plain else BLOCK

    def innermost(self, initial: str) -> tuple[tuple[Node, ...], str]:
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
            *(self.extreme_of_parts() if self.is_plain else self.extreme_in_turn()),
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

    def joined_parts(self) -> tuple[Node, ...]:
        """Return the nodes of `all_numbers` and `all_nans` of the parts of a block."""
        count = _COUNTS[self.accumulator]
        return (
            self.of_numbers("numbers01", "numbers0", "numbers1"),
            self.of_numbers("numbers23", "numbers2", "numbers3"),
            self.of_numbers("all_numbers", "numbers01", "numbers23"),
            Compute("all_nans", "add", ("nans0", "nans2"), count),
        )

    def rows_together(self) -> tuple[Node, ...]:
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

    def of_numbers(self, target: str, left: str, right: str) -> Compute:
        """Return the extreme of two numbers; of a NaN and a number it may be either."""
        return Compute(target, _OF_NUMBERS[self.kind], (left, right), self.accumulator)

    def counted(self, target: str, before: str, is_nan: str) -> tuple[Node, ...]:
        count = _COUNTS[self.accumulator]
        return (
            Compute(f"{target}_one", "cast", (is_nan,), count),
            Compute(target, "add", (before, f"{target}_one"), count),
        )
