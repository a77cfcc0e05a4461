"""Eigenvalues and eigenvectors of a symmetric matrix, by LAPACK.

Output 0 has the eigenvalues, ascending. Output 1 has an eigenvector in each row: LAPACK reads and writes
memory column after column. The other outputs are scratch memory: floats and int64s to work with and, for
the driver "evr", the matrix. LAPACK overwrites the matrix, a transposed copy, which is output 1 for the
driver "evd". Arguments besides those in building.py:

    ("rows",)      the number of rows, and columns, of the matrix
    ("floats",)    the number of floats to work with
    ("integers",)  the number of int64s to work with

If an element of the matrix is no finite number, or LAPACK finds no eigenvalues, the results are NaN: some
releases of LAPACK do not end for NaN.
"""

from __future__ import annotations

from engine.lowering.kernels.building import KernelBuilder, constant, fortran_call
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
    Place,
    ReadElement,
    WriteElement,
)
from engine.runtime.kernel_interface import TOO_LONG


def symmetric_eigen(dtype: str, driver: str, lower: bool) -> Kernel:
    """Return the kernel for a matrix of which the `lower` or upper triangle is read, by LAPACK's `driver`."""
    is_evr = driver == "evr"
    builder = KernelBuilder()
    builder.pointer("values", dtype, ("output", 0))
    builder.pointer("vectors", dtype, ("output", 1))
    builder.pointer("work", dtype, ("output", 2))
    builder.pointer("iwork", "int64", ("output", 3))
    if is_evr:
        builder.pointer("matrix", dtype, ("output", 4))
    for name in ("rows", "floats", "integers"):
        builder.integer(name, (name,))
    builder.pointer("details", "int64", ("details",))
    solved: tuple[Node, ...] = (
        WriteElement(Place("info"), "none"),
        _syevr(dtype, lower) if is_evr else _syevd(dtype, lower),
        ReadElement("failed", Place("info")),
        Compute("has_failed", "neq", ("failed", "none"), "bool"),
        If("has_failed", _fill_with_nan("failed")),
    )
    body = (
        constant("none", "int64", 0),
        constant("two", "int64", 2),
        constant("limit", "int64", 2**31),
        constant("zero", dtype, 0),
        constant("nan", dtype, float("nan")),
        Array("info", "int64", 1),
        Array("found", "int64", 1),
        Compute("is_long", "ge", ("floats", "limit"), "bool"),
        If("is_long", (Fail(TOO_LONG, "details", ("rows",)),)),
        Compute("size", "mul", ("rows", "rows"), "int64"),
        *_look_for_nan("matrix" if is_evr else "vectors", dtype),
        Compute("has_rows", "gt", ("rows", "none"), "bool"),
        If("is_unknown", _fill_with_nan("unknown"), (If("has_rows", solved),)),
    )
    return builder.kernel(body, f"symmetric eigen: {dtype} {driver} {'lower' if lower else 'upper'}")


def _look_for_nan(matrix: str, dtype: str) -> tuple[Node, ...]:
    """Return the nodes of `is_unknown`: some element is NaN or infinite."""
    body = (
        ReadElement("element", Place(matrix, (("at",),))),
        Compute("nothing", "sub", ("element", "element"), dtype),
        Compute("following", "add", ("sum", "nothing"), dtype),
    )
    return (
        Loop("at", 0, "size", 1, body, (Carried("sum", "zero", "following", unordered=True),)),
        Compute("is_unknown", "isnan", ("sum",), "bool"),
    )


def _fill_with_nan(name: str) -> tuple[Node, ...]:
    """Return the nodes that fill the results; `name` begins their names."""
    value, vector = f"{name}_value", f"{name}_vector"
    return (
        Loop(value, 0, "rows", 1, (WriteElement(Place("values", ((value,),)), "nan"),)),
        Loop(vector, 0, "size", 1, (WriteElement(Place("vectors", ((vector,),)), "nan"),)),
    )


def _syevr(dtype: str, lower: bool) -> Call:
    """Return the call for all eigenvalues; the range of those wanted is not read."""
    wanted, unread = (b"V", b"A", _triangle(lower), "rows"), (0.0, 0.0, 1, 1)
    found = Place("found"), Place("values"), Place("vectors"), "rows", Place("iwork")
    room = Place("work"), "floats", Place("iwork", (("two", "rows"),)), "integers"
    matrix = Place("matrix"), "rows"
    return fortran_call(
        "lapack", "syevr", dtype, *wanted, *matrix, *unread, 0.0, *found, *room, Place("info")
    )


def _syevd(dtype: str, lower: bool) -> Call:
    wanted, matrix = (b"V", _triangle(lower), "rows"), (Place("vectors"), "rows")
    room = Place("work"), "floats", Place("iwork"), "integers"
    return fortran_call("lapack", "syevd", dtype, *wanted, *matrix, Place("values"), *room, Place("info"))


def _triangle(lower: bool) -> bytes:
    """Return the letter of a triangle."""
    return b"L" if lower else b"U"
