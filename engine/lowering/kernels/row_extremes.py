"""The largest or smallest of floats along rows; NaN if there is one.

Elements are compared as if all were numbers, which is faster, and NaNs are noted beside that. A long plain
array is read in PARTS parts side by side, and so are ROWS_OF_EXTREMES rows of a plain matrix.
"""

from __future__ import annotations

import math

from engine.lowering.kernels.building import constant
from engine.lowering.kernels.reduction_nest import renamed
from engine.lowering.kernels.row_reduction import BLOCK, PART, PARTS, RowReduction
from engine.lowering.loops import Bound, Carried, Compute, Loop, Node, Place, ReadElement, WriteElement

ROWS_OF_EXTREMES = 6
"""Rows whose extremes are found side by side: with AVX2, registers hold no more (decision 0207)."""

_OF_NUMBERS = {"max": "maximum_of_numbers", "min": "minimum_of_numbers"}
_NOTES = {"float64": "int64", "float32": "int32"}
"""The integers that are 1 once there was a NaN: as wide as the floats, so that a vector has as many."""


class RowExtreme(RowReduction, frozen=True):
    """The largest or smallest of floats along the innermost axis."""

    @property
    def block(self) -> int:
        return PARTS * PART if self.is_plain else BLOCK

    def innermost(self, initial: str) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop of an extreme of floats: NaNs are noted beside it."""
        inner, total = self.extreme_of_blocks(initial)
        return (*self.numbers_of_nans(), *inner), total

    def numbers_of_nans(self) -> tuple[Node, ...]:
        """Return the constants that extremes of floats need: NaN, and that there were none at first."""
        no_nans = constant("no_nans", _NOTES[self.accumulator], 0)
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
        """Return the loop along a block that finds `all_numbers`, the extreme, and notes `all_nans`."""
        value = self.fused.name(self.reduced)
        each = (
            self.of_numbers("following", "all_numbers", value),
            Compute("is_nan", "isnan", (value,), "bool"),
            *self.noted("following_nans", "all_nans", "is_nan"),
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
            each += self.noted(f"following_nans{n}", f"nans{n}", f"is_nan{n}")
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
        return (
            self.of_numbers("numbers01", "numbers0", "numbers1"),
            self.of_numbers("numbers23", "numbers2", "numbers3"),
            self.of_numbers("all_numbers", "numbers01", "numbers23"),
            Compute("all_nans", "or_", ("nans0", "nans2"), _NOTES[self.accumulator]),
        )

    def rows_together(self) -> tuple[Node, ...]:
        """Return the loops of the extremes of a plain matrix's rows: ROWS_OF_EXTREMES side by side.

        The last rows, if they are fewer, are read one after the other.
        """
        column, numbers = self.gone[0], range(ROWS_OF_EXTREMES)
        each = [node for n in numbers for node in self.extreme_of_row(n)]
        carried = [carried for n in numbers for carried in self.carried_of_row(n)]
        along = Loop("column", 0, "whole_end", 1, tuple(each), tuple(carried), interleaved=False)
        whole = (along, *(node for n in numbers for node in self.found_of_row(n)))
        rest, total = self.extreme_of_blocks("found", "whole_end")
        groups = self.in_groups(ROWS_OF_EXTREMES, column.extent, whole, rest, total)
        return (*self.numbers_of_nans(), *groups)

    def extreme_of_row(self, n: int) -> tuple[Node, ...]:
        """Return the nodes that compare the next element of row `n` of a group."""
        (cast,), place = self.fused.statements, self.fused.place(0)
        terms = [renamed(term, self.gone[0].index, "column") for term in place.terms]
        terms = [renamed(term, self.kept[0].index, f"row{n}") for term in terms]
        return (
            ReadElement(f"row_element{n}", Place(place.pointer, tuple(terms))),
            Compute(f"row_value{n}", cast.op, (f"row_element{n}",), self.accumulator),
            self.of_numbers(f"row_following{n}", f"row_numbers{n}", f"row_value{n}"),
            Compute(f"row_is_nan{n}", "isnan", (f"row_value{n}",), "bool"),
            *self.noted(f"row_following_nans{n}", f"row_nans{n}", f"row_is_nan{n}"),
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
            WriteElement(Place("of_rows", ((f"behind_row{n}",),)), f"row_extreme{n}"),
        )

    def of_numbers(self, target: str, left: str, right: str) -> Compute:
        """Return the extreme of two numbers; of a NaN and a number it may be either."""
        return Compute(target, _OF_NUMBERS[self.kind], (left, right), self.accumulator)

    def noted(self, target: str, before: str, is_nan: str) -> tuple[Node, ...]:
        """Return the nodes of `target`: 1 if `before` is, or if there is a NaN now; else 0."""
        note = _NOTES[self.accumulator]
        return (
            Compute(f"{target}_one", "cast", (is_nan,), note),
            Compute(target, "or_", (before, f"{target}_one"), note),
        )
