"""Reductions whose innermost axis in memory is kept: neighbouring elements are accumulated together.

So memory is read in its order, more than a page at a time. A sum adds element by element, as numpy's does
along an outer axis.
"""

from __future__ import annotations

from engine.lowering.kernels.building import constant
from engine.lowering.kernels.nest import Axis, contiguous_terms, end_of
from engine.lowering.kernels.reduction_nest import ReductionNest, renamed
from engine.lowering.loops import Array, Compute, Loop, Node, Place, ReadElement, WriteElement

TILE = 2048
"""Elements of the output that are accumulated together."""
TOGETHER = 2
"""Rows that are accumulated together."""


class ColumnReduction(ReductionNest, frozen=True):
    """A reduction whose innermost axis is kept."""

    def loops(self) -> tuple[Node, ...]:
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
            terms = tuple([(renamed(term, axis.index, f"row{n}")) for term in operand.terms])
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
