"""Products of the rows of a matrix of floats, several rows side by side.

They are computed in turn, as numpy's: a partial product of other elements may overflow where theirs does not.
"""

from __future__ import annotations

from engine.lowering.kernels.building import constant
from engine.lowering.kernels.nest import end_of
from engine.lowering.kernels.row_reduction import RowReduction
from engine.lowering.loops import (
    COLUMNS_OF_PRODUCTS,
    ROW_PRODUCTS,
    ROWS_OF_PRODUCTS,
    Address,
    Array,
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


class RowProduct(RowReduction, frozen=True):
    """A product along the innermost axis."""

    def rows_together(self) -> tuple[Node, ...] | None:
        """Return the loop over ROWS_OF_PRODUCTS rows at a time; None for dtypes without a function for it."""
        function = f"row_products_{self.fused.operands[0].dtype}_{self.accumulator}"
        if function not in ROW_PRODUCTS:
            return None
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
