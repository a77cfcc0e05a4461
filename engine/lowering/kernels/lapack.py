"""Systems of equations, Cholesky's factor and determinants, by LAPACK.

LAPACK reads memory column after column: to it, a matrix as it lies in memory is transposed. It works in
place: the caller copies what is overwritten into buffers, which are the outputs, and gives scratch
memory for pivots. A right-hand side, and the solution that replaces it, lie column after column.
Arguments besides those in building.py:

    ("rows",)     the number of rows, and columns, of the matrix
    ("columns",)  the number of columns of the right-hand side

LAPACK is not called for a matrix of no rows. The detail of a failure is LAPACK's `info`. A matrix of few
rows is factored, and triangular equations with it are solved, without LAPACK (small_matrices.py).
"""

from __future__ import annotations

from collections.abc import Callable

from engine.lowering.kernels.building import KernelBuilder, constant, fortran_call, number_bytes
from engine.lowering.kernels.small_matrices import FEW_ROWS, check_diagonal, factor, substitute
from engine.lowering.loops import (
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
    WriteElement,
)
from engine.runtime.kernel_interface import NOT_POSITIVE_DEFINITE, TOO_LONG

FEW = 1024
"""A right-hand side of at most so many elements is solved column by column."""

Count = str | int


def solve_general(dtype: str, transposed: bool) -> Kernel:
    """Return the kernel that solves with a matrix, or with it `transposed`, by LU decomposition.

    Outputs: the right-hand side, which becomes the solution; the matrix, which is overwritten; as many
    int64s as it has rows. If there is no solution, it is filled with NaN.
    """
    builder = _builder(dtype, ("output", 1))
    _declare_right_side(builder, dtype)
    builder.pointer("pivots", "int64", ("output", 2))

    def solved(right: Place, columns: Count, name: str) -> tuple[Node, ...]:
        # To LAPACK the matrix is transposed already.
        factored = b"N" if transposed else b"T", "rows", columns, Place("matrix"), "rows", Place("pivots")
        return (fortran_call("lapack", "getrs", dtype, *factored, right, "rows", Place("info")),)

    failed = _fill_with_nan(dtype, Place("right"), "columns", "factored")
    nodes = _check_info((_factor_lu(dtype),), "factored", failed, _solve_columns(solved))
    return _kernel(builder, nodes, f"solve_general: {dtype}{' transposed' * transposed}", ("columns",))


def solve_triangular(dtype: str, lower: bool, unit_diagonal: bool, transposed: bool) -> Kernel:
    """Return the kernel that solves with a triangle of input 0, as it lies or `transposed`.

    `lower` is the triangle of the matrix as it is used. Output: the right-hand side, which becomes the
    solution. If there is a 0 on the diagonal, it is filled with NaN.
    """
    builder = _builder(dtype, ("input", 0))
    _declare_right_side(builder, dtype)

    def solved(right: Place, columns: Count, name: str) -> tuple[Node, ...]:
        call = _solve_triangle(dtype, lower == transposed, not transposed, unit_diagonal, right, columns)
        return _check_info((call,), name, _fill_with_nan(dtype, right, columns, name))

    few = substitute(dtype, lower, transposed, unit_diagonal)
    if not unit_diagonal:
        failed = _fill_with_nan(dtype, Place("right"), "columns", "checked")
        few = _check_info(check_diagonal(dtype), "checked", failed, few)
    nodes = (If("has_few_rows", few, _solve_columns(solved)),)
    summary = f"solve_triangular: {dtype} {'lower' if lower else 'upper'}"
    return _kernel(
        builder,
        nodes,
        summary + " unit_diagonal" * unit_diagonal + " transposed" * transposed,
        ("columns",),
    )


def solve_positive(dtype: str, lower: bool) -> Kernel:
    """Return the kernel that solves with a positive definite matrix, by its `lower` or upper triangle.

    Outputs: the right-hand side, which becomes the solution; the matrix, which is overwritten. If the
    matrix is not positive definite, the solution is filled with NaN.
    """
    builder = _builder(dtype, ("output", 1))
    _declare_right_side(builder, dtype)

    def solved(right: Place, columns: Count, name: str) -> tuple[Node, ...]:
        # The factor lies in LAPACK's other triangle. L y = b, then L' x = y; or U' y = b, then U x = y.
        return (
            _solve_triangle(dtype, not lower, lower, False, right, columns),
            _solve_triangle(dtype, not lower, not lower, False, right, columns),
        )

    failed = _fill_with_nan(dtype, Place("right"), "columns", "factored")
    # The triangle of the factor, then that of its transpose: the lower one comes first.
    few = (*substitute(dtype, True, not lower), *substitute(dtype, False, lower))
    solution = (If("has_few_rows", few, _solve_columns(solved)),)
    nodes = _check_info(_factor_cholesky(dtype, lower), "factored", failed, solution)
    return _kernel(builder, nodes, f"solve_positive: {dtype} {'lower' if lower else 'upper'}", ("columns",))


def cholesky(dtype: str, lower: bool, fails: bool) -> Kernel:
    """Return the kernel of Cholesky's factor of a matrix; only the `lower` or upper triangle is read.

    Output: the matrix, which becomes the factor. If it is not positive definite, the kernel returns
    NOT_POSITIVE_DEFINITE if it `fails`, else the factor is filled with NaN.
    """
    builder = _builder(dtype, ("output", 0))
    failed: tuple[Node, ...] = (Fail(NOT_POSITIVE_DEFINITE, "details", ("factored",)),)
    if not fails:
        nan = constant("nan", dtype, float("nan"))
        failed = (nan, Loop("r", 0, "rows", 1, (Loop("c", 0, "rows", 1, (_store("r", "c", "nan"),)),)))
    zeros = (constant("empty", dtype, 0), _clear_other_triangle(lower))
    nodes = _check_info(_factor_cholesky(dtype, lower), "factored", failed, zeros)
    summary = f"cholesky: {dtype} {'lower' if lower else 'upper'}"
    return _kernel(builder, nodes, summary + " or NaN" * (not fails))


def slogdet(dtype: str) -> Kernel:
    """Return the kernel of the sign of a matrix's determinant, and the logarithm of its magnitude.

    Outputs: the sign, the logarithm, the matrix, which is overwritten, and as many int64s as it has
    rows.
    """
    builder = _builder(dtype, ("output", 2))
    builder.pointer("sign", dtype, ("output", 0))
    builder.pointer("logarithm", dtype, ("output", 1))
    builder.pointer("pivots", "int64", ("output", 3))
    builder.pointer("halves", "int32", ("output", 3))
    constants = (
        constant("nothing", dtype, 0),
        constant("unit", dtype, 1.0),
        constant("minus", dtype, -1.0),
    )
    # The result for a matrix of no rows, which is not factored.
    initial = (WriteElement(Place("sign"), "unit"), WriteElement(Place("logarithm"), "nothing"))
    # A pivot that is 0 is no failure here.
    nodes = (_factor_lu(dtype), *_diagonal_product(dtype))
    return _kernel(builder, nodes, f"slogdet: {dtype}", before=(*constants, *initial))


def _diagonal_product(dtype: str) -> tuple[Node, ...]:
    """Return the nodes of the sign and logarithm of the factor's diagonal; exchanged rows change the sign.

    Pivots are int64s or int32s, the integers of this LAPACK. If they are int32s, the second of them is
    not 0 and makes the first int64 at least 2**32.
    """
    body = (
        ReadElement("pivot", Place("matrix", (("at", "rows"), ("at",)))),
        Compute("magnitude", "abs", ("pivot",), dtype),
        Compute("term", "log", ("magnitude",), dtype),
        Compute("logarithms", "add", ("before", "term"), dtype),
        Compute("own", "sign", ("pivot",), dtype),
        ReadElement("exchanged32", Place("halves", (("at", "width"),))),
        Compute("exchanged", "cast", ("exchanged32",), "int64"),
        Compute("place", "add", ("at", "one"), "int64"),
        Compute("is_exchanged", "neq", ("exchanged", "place"), "bool"),
        Compute("turn", "where", ("is_exchanged", "minus", "unit"), dtype),
        Compute("turned", "mul", ("own", "turn"), dtype),
        Compute("signs", "mul", ("sign_before", "turned"), dtype),
    )
    carried = (Carried("before", "nothing", "logarithms"), Carried("sign_before", "unit", "signs"))
    return (
        constant("two", "int64", 2),
        constant("half", "int64", 2**32),
        ReadElement("first", Place("pivots")),
        Compute("is_wide", "lt", ("first", "half"), "bool"),
        Compute("width", "where", ("is_wide", "two", "one"), "int64"),
        Loop("at", 0, "rows", 1, body, carried),
        Compute("is_unknown", "isnan", ("before",), "bool"),
        Compute("known_sign", "where", ("is_unknown", "before", "sign_before"), dtype),
        WriteElement(Place("sign"), "known_sign"),
        WriteElement(Place("logarithm"), "before"),
    )


def _builder(dtype: str, matrix: tuple[str, int]) -> KernelBuilder:
    builder = KernelBuilder()
    builder.pointer("matrix", dtype, matrix)
    builder.integer("rows", ("rows",))
    builder.pointer("details", "int64", ("details",))
    return builder


def _declare_right_side(builder: KernelBuilder, dtype: str) -> None:
    builder.pointer("right", dtype, ("output", 0))
    builder.integer("columns", ("columns",))


def _kernel(
    builder: KernelBuilder,
    nodes: tuple[Node, ...],
    summary: str,
    counted: tuple[str, ...] = (),
    before: tuple[Node, ...] = (),
) -> Kernel:
    """Return the kernel of `nodes`, run if there are rows and LAPACK can count these and `counted`."""
    limits: list[Node] = []
    for name in ("rows", *counted):
        is_long = Compute(f"{name}_long", "ge", (name, "limit"), "bool")
        limits += [is_long, If(is_long.target, (Fail(TOO_LONG, "details", (name,)),))]
    body = (
        constant("none", "int64", 0),
        constant("one", "int64", 1),
        constant("limit", "int64", 2**31),
        Array("info", "int64", 1),
        *before,
        *limits,
        constant("few_rows", "int64", FEW_ROWS),
        Compute("has_few_rows", "le", ("rows", "few_rows"), "bool"),
        Compute("has_rows", "gt", ("rows", "none"), "bool"),
        If("has_rows", nodes),
    )
    return builder.kernel(body, summary)


def _check_info(
    nodes: tuple[Node, ...], name: str, failed: tuple[Node, ...], otherwise: tuple[Node, ...] = ()
) -> tuple[Node, ...]:
    """Return `nodes`, then `failed` if their info, which gets this `name`, is not 0, else `otherwise`."""
    return (
        WriteElement(Place("info"), "none"),
        *nodes,
        ReadElement(name, Place("info")),
        Compute(f"{name}_not", "neq", (name, "none"), "bool"),
        If(f"{name}_not", failed, otherwise),
    )


def _fill_with_nan(dtype: str, right: Place, columns: Count, name: str) -> tuple[Node, ...]:
    """Return the nodes that fill these columns of the right-hand side with NaN; `name` begins their names."""
    at, nan, stop = f"{name}_at", f"{name}_nan", "rows"
    counted: tuple[Node, ...] = ()
    if isinstance(columns, str):
        stop = f"{name}_elements"
        counted = (Compute(stop, "mul", ("rows", columns), "int64"),)
    element = Place(right.pointer, (*right.terms, (at,)))
    bits = number_bytes(dtype, float("nan"))
    return (Number(nan, dtype, bits), *counted, Loop(at, 0, stop, 1, (WriteElement(element, nan),)))


def _factor_lu(dtype: str) -> Call:
    """Return the call that factors the matrix into LU, with exchanged rows."""
    matrix = Place("matrix"), "rows"
    return fortran_call("lapack", "getrf", dtype, "rows", "rows", *matrix, Place("pivots"), Place("info"))


def _factor_cholesky(dtype: str, lower: bool) -> tuple[Node, ...]:
    triangle = b"U" if lower else b"L"
    matrix = Place("matrix"), "rows"
    call = fortran_call("lapack", "potrf", dtype, triangle, "rows", *matrix, Place("info"))
    return (If("has_few_rows", factor(dtype, lower), (call,)),)


def _solve_columns(solved: Callable[[Place, Count, str], tuple[Node, ...]]) -> tuple[Node, ...]:
    """Return the nodes that solve for all columns in one call, or one after the other for FEW elements.

    For more than one column OpenBLAS starts its threads, which takes longer than to solve for few
    elements.
    """
    each = solved(Place("right", (("column", "rows"),)), 1, "solved_each")
    return (
        Compute("elements", "mul", ("rows", "columns"), "int64"),
        constant("few", "int64", FEW),
        Compute("is_small", "le", ("elements", "few"), "bool"),
        If(
            "is_small",
            (Loop("column", 0, "columns", 1, each),),
            solved(Place("right"), "columns", "solved_all"),
        ),
    )


def _solve_triangle(
    dtype: str, lower: bool, transposed: bool, unit_diagonal: bool, right: Place, columns: Count
) -> Call:
    """Return the call that solves with a triangle as LAPACK sees it, or with that transposed."""
    letters = b"L" if lower else b"U", b"T" if transposed else b"N", b"U" if unit_diagonal else b"N"
    matrix = Place("matrix"), "rows"
    return fortran_call(
        "lapack", "trtrs", dtype, *letters, "rows", columns, *matrix, right, "rows", Place("info")
    )


def _clear_other_triangle(lower: bool) -> Loop:
    """Return the loop that writes zeros above the diagonal, or below it."""
    if lower:
        inner: tuple[Node, ...] = (
            Compute("behind", "add", ("i", "one"), "int64"),
            Loop("j", "behind", "rows", 1, (_store("i", "j", "empty"),)),
        )
    else:
        inner = (Loop("j", 0, "i", 1, (_store("i", "j", "empty"),)),)
    return Loop("i", 0, "rows", 1, inner)


def _store(row: str, column: str, value: str) -> WriteElement:
    return WriteElement(Place("matrix", ((row, "rows"), (column,))), value)
