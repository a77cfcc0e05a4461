"""Sums of floats along rows.

They are computed in blocks of BLOCK elements, in partial results side by side within a block. A long plain
array is read in PARTS parts side by side, and so are PARTS long rows of a plain matrix. The rounding error
grows at most with the length of a part plus the number of blocks, not with the number of elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.lowering.kernels.building import constant
from engine.lowering.kernels.row_reduction import PART, PARTS, RowReduction
from engine.lowering.loops import Carried, Compute, Loop, Node, Place, WriteElement

ROW_PART = 1024
"""Elements of each of PARTS rows that are added up side by side."""


class RowSum(RowReduction, frozen=True):
    """A sum of floats along the innermost axis."""

    def innermost(self, initial: str) -> tuple[tuple[Node, ...], str]:
        if self.is_plain:
            return self.sum_in_parts(initial)
        return self.in_blocks(initial, *self.sum_along_block())

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
            constant("part_size", "int64", PART),
            *(constant(f"behind{n}", "int64", n * PART) for n in range(PARTS)),
            constant("whole_blocks", "int64", -PARTS * PART),
            Compute("whole_end", "and_", (self.gone[-1].extent, "whole_blocks"), "int64"),
            Loop("whole", 0, "whole_end", PARTS * PART, whole, (of_whole,)),
            *rest,
        ), total

    def rows_together(self) -> tuple[Node, ...]:
        """Return the loops of the sums of a plain matrix's rows: whole parts of PARTS rows side by side.

        What is left of a row is added to its sum after them, and so are all of the last rows, if they are
        fewer.
        """
        rest, total = self.in_blocks("found", *self.sum_along_block(), "whole_end")
        return (
            constant("part_size", "int64", ROW_PART),
            constant("whole_lengths", "int64", -ROW_PART),
            Compute("whole_parts", "and_", (self.gone[0].extent, "whole_lengths"), "int64"),
            *self.in_groups(PARTS, "whole_parts", self.whole_parts_of_rows(), rest, total),
        )

    def whole_parts_of_rows(self) -> tuple[Node, ...]:
        """Return the loop over the whole parts of PARTS rows, whose sums are in `of_rows` after it."""
        elements = [self.part_element(n, "whole") for n in range(PARTS)]
        part: list[Node] = [self.side_by_side(elements)]
        part += [self.combine(f"next_total{n}", f"total{n}", f"sum{n}") for n in range(PARTS)]
        carried = tuple([Carried(f"total{n}", "neutral", f"next_total{n}") for n in range(PARTS)])
        found = [WriteElement(Place("of_rows", ((f"behind_row{n}",),)), f"total{n}") for n in range(PARTS)]
        return (Loop("whole", 0, "whole_end", ROW_PART, tuple(part), carried), *found)

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
