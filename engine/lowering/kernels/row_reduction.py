"""Reductions whose innermost axis in memory is reduced: one element of the output after the other.

What sums, products and extremes of floats do otherwise is in modules of their own.
"""

from __future__ import annotations

from engine.lowering.kernels.building import constant
from engine.lowering.kernels.nest import end_of
from engine.lowering.kernels.reduction_nest import ReductionNest, renamed
from engine.lowering.loops import Array, Bound, Carried, Compute, Loop, Node, Place, ReadElement

BLOCK = 2048
"""Elements of a block."""
PARTS, PART = 4, 4096
"""Parts of a block that are read side by side, and their elements (decisions 0164, 0171, 0187)."""


class RowReduction(ReductionNest, frozen=True):
    """A reduction whose innermost axis is reduced, element by element."""

    @property
    def block(self) -> int:
        """The elements of a block."""
        return BLOCK

    def loops(self) -> tuple[Node, ...]:
        block_size = constant("block_size", "int64", self.block)
        together = self.rows_together() if self.is_plain and len(self.kept) == 1 else None
        if together is not None:
            return (block_size, *together)
        depth = self.fused.depth - 1
        initial = "neutral" if depth == len(self.kept) else f"total{depth - 1}"
        inner, total = self.innermost(initial)
        for outer in reversed(range(len(self.kept), depth)):
            inner, total = self.outer_loop(outer, inner, total)
        return (block_size, *self.nest(self.kept, 0, inner + self.store(total)))

    def rows_together(self) -> tuple[Node, ...] | None:
        """Return the loops for a plain matrix with several rows side by side; None if there are none."""
        return None

    def innermost(self, initial: str) -> tuple[tuple[Node, ...], str]:
        """Return the innermost loop, which begins with `initial`, and the name of its total."""
        depth, axis = self.fused.depth, self.gone[-1]
        body = (
            *self.fused.nodes(depth),
            self.combine("following", "accumulated", self.fused.name(self.reduced)),
        )
        loop = Loop(axis.index, 0, axis.extent, 1, body, (Carried("accumulated", initial, "following"),))
        return (*self.fused.nodes(depth - 1), loop), "accumulated"

    def in_groups(
        self, n_rows: int, whole_length: str, whole: tuple[Node, ...], rest: tuple[Node, ...], total: str
    ) -> tuple[Node, ...]:
        """Return the loop over groups of `n_rows` rows of a plain matrix, `row0` and so on.

        `whole` reduces them side by side up to the column `whole_end`, into the array `of_rows`, whose
        elements are at `behind_row0` and so on. That column is `whole_length`; in a last group of fewer rows
        it is 0. `rest` goes on from there with one row after the other: from `found` to `total`.
        """
        (row,), numbers = self.kept, range(n_rows)
        finish = (
            Compute("position", "sub", (row.index, "group"), "int64"),
            ReadElement("found", Place("of_rows", (("position",),))),
            *rest,
            *self.store(total),
        )
        group = (
            Array("of_rows", self.accumulator, n_rows),
            *end_of("group", "rows_together", row.extent),
            Compute("group_rows", "sub", (row.extent, "group"), "int64"),
            Compute("is_whole", "ge", ("group_rows", "rows_together"), "bool"),
            Compute("whole_end", "where", ("is_whole", whole_length, "no_column"), "int64"),
            *(Compute(f"row{n}", "add", ("group", f"behind_row{n}"), "int64") for n in numbers),
            *whole,
            Loop(row.index, "group", "group_end", 1, finish),
        )
        return (
            *(constant(f"behind_row{n}", "int64", n) for n in numbers),
            constant("rows_together", "int64", n_rows),
            constant("no_column", "int64", 0),
            Loop("group", 0, row.extent, n_rows, group),
        )

    def outer_loop(self, depth: int, inner: tuple[Node, ...], total: str) -> tuple[tuple[Node, ...], str]:
        """Return a loop over a reduced axis around `inner`, and the name of its total."""
        axis, name = self.fused.axes[depth], f"total{depth}"
        initial = "neutral" if depth == len(self.kept) else f"total{depth - 1}"
        loop = Loop(axis.index, 0, axis.extent, 1, inner, (Carried(name, initial, total),))
        return (*self.fused.nodes(depth), loop), name

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
