"""Reductions whose innermost axis in memory is kept: neighbouring elements are accumulated together.

So memory is read in its order, more than a page at a time. A sum adds element by element, as numpy's does
along an outer axis.
"""

from __future__ import annotations

from engine.lowering.kernels.building import constant
from engine.lowering.kernels.nest import Axis, contiguous_terms, end_of
from engine.lowering.kernels.reduction_nest import ReductionNest, renamed
from engine.lowering.loops import Array, Bound, Compute, Loop, Node, Place, ReadElement, WriteElement

TILE = 4096
"""Elements of the output that are accumulated together: the level-1 cache holds as many doubles."""
TOGETHER = 8
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
        """Return the loops over TOGETHER rows at a time, which read and write a tile's totals once for all,
        and over the rows that are left."""
        extent = self.gone[0].extent
        return (
            constant("together", "int64", TOGETHER),
            Compute("n_left", "mod", (extent, "together"), "int64"),
            Compute("left", "sub", (extent, "n_left"), "int64"),
            self.group("", TOGETHER, 0, "left"),
            self.group("left_", 1, "left", extent),
        )

    def group(self, prefix: str, n_rows: int, start: Bound, stop: Bound) -> Loop:
        """Return the loop over `n_rows` rows at a time; the names in it begin with `prefix`."""
        (cast,), (axis,), operand = self.fused.statements, self.gone, self.fused.place(0)
        column = self.kept[-1]
        first, before = f"{prefix}first_row", f"{prefix}before"
        rows: list[Node] = []
        values: list[Node] = []
        for n in range(n_rows):
            row, element, value, after = (
                f"{prefix}{name}{n}" for name in ("row", "element", "value", "after")
            )
            rows.append(constant(f"{prefix}behind{n}", "int64", n))
            rows.append(Compute(row, "add", (first, f"{prefix}behind{n}"), "int64"))
            terms = tuple([renamed(term, axis.index, row) for term in operand.terms])
            terms = tuple([renamed(term, column.index, f"{prefix}{column.index}") for term in terms])
            values.append(ReadElement(element, Place("x0", terms)))
            values.append(Compute(value, cast.op, (element,), self.accumulator))
            values.append(self.combine(after, before, value))
            before = after
        return Loop(first, start, stop, n_rows, (*rows, self.along_tile(tuple(values), before, prefix)))

    def along_tile(self, values: tuple[Node, ...], after: str, prefix: str = "") -> Loop:
        """Return the loop along a tile in which `values` make the total `after` of the one before."""
        column, position = self.kept[-1], f"{prefix}position"
        place = Place("accumulated", ((position,),))
        index = f"{prefix}{column.index}"
        accumulate = (
            Compute(position, "sub", (index, "tile"), "int64"),
            ReadElement(f"{prefix}before", place),
            *values,
            WriteElement(place, after),
        )
        return Loop(index, "tile", "tile_end", 1, accumulate, independent=True)

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
