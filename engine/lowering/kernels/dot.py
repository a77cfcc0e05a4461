"""Products of vectors and matrices: of floats by BLAS unless they are small, else in loops.

A matrix is C-contiguous in memory, and is used as it lies or `transposed`. The operands are inputs 0
and 1. These are the dims of the nest, whose lengths are asked for as extents:

    vector · vector   (k)
    matrix · vector   (m, k)
    matrix · matrix   (m, k, n)

Integers wrap, bools are or-ed, and a sum of nothing is 0. BLAS is called for at least BLAS_*_SIZE
multiplications, if it can count every length: from there on it is faster than the loops
(docs/decisions/0002-blas-from-numpy.md).
"""

from __future__ import annotations

from functools import cache

from engine.lowering.kernels.building import KernelBuilder, constant, fortran_call
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.loops import (
    Call,
    Carried,
    Compute,
    If,
    Kernel,
    Loop,
    Node,
    Number,
    Place,
    ReadElement,
    WriteElement,
)
from engine.lowering.operations import FLOATS
from engine.lowering.statements import Statement
from engine.runtime.kernel_interface import ITEM_SIZES

BLAS_MATRIX_SIZE = 100
BLAS_VECTOR_SIZE = 200


@cache
def vector_vector(dtype: str) -> Kernel:
    """Return the kernel of the inner product of two vectors of `dtype`: a reduction, in lanes."""
    kind, product = ("any", "and_") if dtype == "bool" else ("sum", "mul")
    body = [Statement(product, (("input", 0), ("input", 1)), dtype)]
    return reduction(kind, [NestOperand(dtype, (False,))] * 2, body, ("value", 0), 1, (0,), dtype, dtype)


@cache
def matrix_vector(dtype: str, transposed: bool) -> Kernel:
    """Return the kernel of matrix · vector of `dtype`; vector · matrix is that of the transposed matrix."""
    builder = _builder(dtype, ("m", "k"))
    loops = _loops(dtype, _matrix("x0", "m", "k", transposed), Place("x1", (("at_k",),)), ("m",))
    if dtype not in FLOATS:
        return _kernel(builder, loops, f"matrix_vector: {dtype}")
    # Fortran sees the matrix transposed.
    rows, columns = ("m", "k") if transposed else ("k", "m")
    matrix = (rows, columns, 1.0, Place("x0"), rows)
    call = fortran_call(
        "blas", "gemv", dtype, _letter(not transposed), *matrix, Place("x1"), 1, 0.0, Place("y"), 1
    )
    nodes = _blas_if_large(loops, ("m", "k"), BLAS_VECTOR_SIZE, call)
    return _kernel(builder, nodes, f"matrix_vector: {dtype}{' transposed' * transposed}")


@cache
def matrix_matrix(dtype: str, first_transposed: bool, second_transposed: bool) -> Kernel:
    """Return the kernel of matrix · matrix of `dtype`."""
    builder = _builder(dtype, ("m", "k", "n"))
    first, second = _matrix("x0", "m", "k", first_transposed), _matrix("x1", "k", "n", second_transposed)
    loops = _loops(dtype, first, second, ("m", "n"))
    if dtype not in FLOATS:
        return _kernel(builder, loops, f"matrix_matrix: {dtype}")
    # Fortran sees each matrix transposed, so it computes the transposed product: second times first.
    letters = _letter(second_transposed), _letter(first_transposed)
    left = Place("x1"), "k" if second_transposed else "n"
    right = Place("x0"), "m" if first_transposed else "k"
    call = fortran_call(
        "blas", "gemm", dtype, *letters, "n", "m", "k", 1.0, *left, *right, 0.0, Place("y"), "n"
    )
    nodes = _blas_if_large(loops, ("m", "k", "n"), BLAS_MATRIX_SIZE, call)
    transposed = " transposed" * first_transposed, " transposed" * second_transposed
    return _kernel(builder, nodes, f"matrix_matrix: {dtype}{transposed[0]}, {dtype}{transposed[1]}")


def _builder(dtype: str, lengths: tuple[str, ...]) -> KernelBuilder:
    builder = KernelBuilder()
    for position in range(2):
        builder.pointer(f"x{position}", dtype, ("input", position))
    for dim, length in enumerate(lengths):
        builder.integer(length, ("extent", (dim,)))
    builder.pointer("y", dtype, ("output", 0))
    return builder


def _kernel(builder: KernelBuilder, nodes: tuple[Node, ...], summary: str) -> Kernel:
    return builder.kernel(nodes, summary)


def _matrix(pointer: str, row: str, column: str, transposed: bool) -> Place:
    """Return the element in row `at_{row}` and column `at_{column}` of a matrix as it is used."""
    if transposed:
        return Place(pointer, ((f"at_{column}", row), (f"at_{row}",)))
    return Place(pointer, ((f"at_{row}", column), (f"at_{column}",)))


def _loops(dtype: str, first: Place, second: Place, kept: tuple[str, ...]) -> tuple[Node, ...]:
    product, add = ("and_", "or_") if dtype == "bool" else ("mul", "add")
    inner = (
        ReadElement("a", first),
        ReadElement("b", second),
        Compute("product", product, ("a", "b"), dtype),
        Compute("following", add, ("total", "product"), dtype),
    )
    terms = (("at_m", "n"), ("at_n",)) if len(kept) == 2 else (("at_m",),)
    nodes: tuple[Node, ...] = (
        Loop("at_k", 0, "k", 1, inner, (Carried("total", "zero", "following"),)),
        WriteElement(Place("y", terms), "total"),
    )
    for length in reversed(kept):
        nodes = (Loop(f"at_{length}", 0, length, 1, nodes),)
    return (Number("zero", dtype, bytes(ITEM_SIZES[dtype])), *nodes)


def _blas_if_large(
    loops: tuple[Node, ...], lengths: tuple[str, ...], size: int, call: Call
) -> tuple[Node, ...]:
    """Return `call` for at least `size` products if BLAS can count the `lengths`, else `loops`."""
    nodes: list[Node] = [
        constant("blas_size", "float64", size),
        constant("blas_limit", "int64", 2**31),
        Compute("products0", "cast", (lengths[0],), "float64"),
        Compute("longest0", "identity", (lengths[0],), "int64"),
    ]
    for number, length in enumerate(lengths[1:], start=1):
        nodes += [
            Compute(f"length{number}", "cast", (length,), "float64"),
            Compute(f"products{number}", "mul", (f"products{number - 1}", f"length{number}"), "float64"),
            Compute(f"longest{number}", "maximum", (f"longest{number - 1}", length), "int64"),
        ]
    last = len(lengths) - 1
    return (
        *nodes,
        Compute("is_long", "ge", (f"products{last}", "blas_size"), "bool"),
        Compute("is_countable", "lt", (f"longest{last}", "blas_limit"), "bool"),
        Compute("is_for_blas", "and_", ("is_long", "is_countable"), "bool"),
        If("is_for_blas", (call,), loops),
    )


def _letter(transposed: bool) -> bytes:
    return b"T" if transposed else b"N"
