"""Cholesky's factor and triangular equations of a matrix of few rows, in loops.

A call of LAPACK takes 50 nanoseconds and more before it computes anything: it reads letters, takes a lock
and asks for memory. A matrix of FEW_ROWS rows or fewer is factored, and equations with it are solved, in less
time by loops of inner products: Golub and Van Loan, "Matrix Computations", 4th edition, 2013, section 3.1
(row-oriented substitution) and section 4.2 (the factor).

The nodes use what the caller declares (kernels/lapack.py): the pointers `matrix`, `right` and `info`,
the integers `rows` and `columns`, and the int64s `none` and `one`. As LAPACK does, they write to `info`
the number of a row, counted from 1, that is not positive definite or has a 0 on the diagonal; or 0.
"""

from __future__ import annotations

from engine.lowering.kernels.building import constant
from engine.lowering.loops import Carried, Compute, Loop, Node, Place, ReadElement, WriteElement

FEW_ROWS = 16
"""The largest number of rows for which the loops are used."""


def factor(dtype: str, lower: bool) -> tuple[Node, ...]:
    """Return the nodes that make the `lower` or upper triangle of the matrix Cholesky's factor."""
    row, column, swapped = "factor_row", "factor_column", not lower
    beside = (
        *_less_products(dtype, "beside", _element(row, column, swapped), (row, column), column, swapped),
        ReadElement("pivot", _element(column, column)),
        Compute("quotient", "true_div", ("beside", "pivot"), dtype),
        WriteElement(_element(row, column, swapped), "quotient"),
    )
    body = (
        Loop(column, 0, row, 1, beside),
        *_less_products(dtype, "square", _element(row, row), (row, row), row, swapped),
        Compute("is_bad", "le", ("square", "zero"), "bool"),
        Compute("root", "sqrt", ("square",), dtype),
        WriteElement(_element(row, row), "root"),
        Compute("number", "add", (row, "one"), "int64"),
        Compute("found", "where", ("is_bad", "number", "none"), "int64"),
    )
    first = Carried("first_bad", "none", "found")
    return (
        constant("zero", dtype, 0),
        Loop(row, 0, "rows", 1, body, (first,), until="is_bad"),
        WriteElement(Place("info"), "first_bad"),
    )


def check_diagonal(dtype: str) -> tuple[Node, ...]:
    """Return the nodes that look for a 0 on the diagonal."""
    body = (
        ReadElement("diagonal", _element("at", "at")),
        Compute("is_zero", "eq", ("diagonal", "zero"), "bool"),
        Compute("row", "add", ("at", "one"), "int64"),
        Compute("found", "where", ("is_zero", "row", "none"), "int64"),
    )
    return (
        constant("zero", dtype, 0),
        Loop("at", 0, "rows", 1, body, (Carried("first_zero", "none", "found"),), until="is_zero"),
        WriteElement(Place("info"), "first_zero"),
    )


def substitute(dtype: str, lower: bool, swapped: bool, unit_diagonal: bool = False) -> tuple[Node, ...]:
    """Return the nodes that solve with the `lower` or upper triangle, `swapped` if it lies transposed.

    The right-hand side, column after column, becomes the solution.
    """
    of = "lower" if lower else "upper"
    row, column, k, rest, pivot = (f"{of}_{name}" for name in ("row", "column", "k", "rest", "pivot"))
    right = Place("right", ((column, "rows"), (row,)))
    product = (
        ReadElement(f"{of}_factor", _element(row, k, swapped)),
        ReadElement(f"{of}_solved", Place("right", ((column, "rows"), (k,)))),
        Compute(f"{of}_product", "mul", (f"{of}_factor", f"{of}_solved"), dtype),
        Compute(f"{of}_less", "sub", (rest, f"{of}_product"), dtype),
    )
    carried = (Carried(rest, f"{of}_given", f"{of}_less"),)
    before: tuple[Node, ...] = ()
    if lower:
        passes, inner = row, Loop(k, 0, row, 1, product, carried)
    else:
        passes, inner = f"{of}_pass", Loop(k, f"{of}_behind", "rows", 1, product, carried)
        before = (
            Compute(f"{of}_behind", "sub", ("rows", passes), "int64"),
            Compute(row, "sub", (f"{of}_behind", "one"), "int64"),
        )
    divided: tuple[Node, ...] = (
        ReadElement(pivot, _element(row, row)),
        Compute(f"{of}_quotient", "true_div", (rest, pivot), dtype),
        WriteElement(right, f"{of}_quotient"),
    )
    if unit_diagonal:
        divided = (WriteElement(right, rest),)
    body = (*before, ReadElement(f"{of}_given", right), inner, *divided)
    return (Loop(column, 0, "columns", 1, (Loop(passes, 0, "rows", 1, body),)),)


def _less_products(
    dtype: str, name: str, given: Place, rows: tuple[str, str], stop: str, swapped: bool
) -> tuple[Node, ...]:
    """Return the nodes of `name`: an element less the inner product of two rows of the factor."""
    k, first, second, product = (f"{name}_{part}" for part in ("k", "first", "second", "product"))
    body = (
        ReadElement(first, _element(rows[0], k, swapped)),
        ReadElement(second, _element(rows[1], k, swapped)),
        Compute(product, "mul", (first, second), dtype),
        Compute(f"{name}_less", "sub", (name, product), dtype),
    )
    return (
        ReadElement(f"{name}_given", given),
        Loop(k, 0, stop, 1, body, (Carried(name, f"{name}_given", f"{name}_less"),)),
    )


def _element(row: str, column: str, swapped: bool = False) -> Place:
    first, second = (column, row) if swapped else (row, column)
    return Place("matrix", ((first, "rows"), (second,)))
