"""Products of the rows of a matrix, several rows side by side, each in the order of its elements.

A product waits for the one before it, so rows are computed in pairs, as vectors of two. Two columns of a
pair of rows are read at a time, converted, and exchanged: {x[0, 0], x[0, 1]} and {x[1, 0], x[1, 1]} become
{x[0, 0], x[1, 0]} and {x[0, 1], x[1, 1]}, by which the pair's products are multiplied in turn. Every
processor has vectors of two doubles; wider ones are no faster.
"""

from __future__ import annotations

from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, POINTER, WORD, FunctionText, LlvmType, LlvmValue
from engine.lowering.loops import ROWS_OF_PRODUCTS

Pair = tuple[LlvmValue, LlvmValue]
_TYPES = {"float64": DOUBLE, "float32": FLOAT}
_SIZES = {DOUBLE: 8, FLOAT: 4}


def define_row_products(symbol: str) -> tuple[str, dict[str, str]]:
    """Return the text of the function `symbol`, one of ROW_PRODUCTS, and what it declares."""
    of, to = (_TYPES[dtype] for dtype in symbol.split("_")[2:])
    b = FunctionText()
    first, length, rows, results = (LlvmValue(WORD, f"%a{n}") for n in range(4))
    pairs = _pairs_of_rows(b, of, first, length, rows)
    target, last = b.convert("inttoptr", results, POINTER), b.op("sub", length, WORD(1))
    one, start = to.vector(2)(1.0), b.block
    b.cbranch(b.compare("icmp sgt", last, WORD(0)), "columns", "end")
    found = _columns(b, pairs, of, to, last)
    b.begin_block("end")
    products = [b.arriving((one, start), (product, "columns")) for product in found]
    for n, product in enumerate(products):
        b.store(product, b.element(to, target, WORD(2 * n)), _SIZES[to])
    head = f"define internal void @{symbol}({first}, {length}, {rows}, {results}) nounwind {{"
    return "\n".join([head, "start:", *b.lines, "  ret void", "}"]), b.declarations


def _pairs_of_rows(
    b: FunctionText, of: LlvmType, first: LlvmValue, length: LlvmValue, rows: LlvmValue
) -> list[Pair]:
    """Return the addresses of the rows, two by two: the last row's, where there are fewer."""
    start, last = b.convert("inttoptr", first, POINTER), b.op("sub", rows, WORD(1))
    numbers = [b.call(WORD, "llvm.smin.i64", [WORD(n), last]) for n in range(ROWS_OF_PRODUCTS)]
    addresses = [b.element(of, start, b.op("mul", number, length)) for number in numbers]
    return list(zip(addresses[::2], addresses[1::2], strict=True))


def _columns(
    b: FunctionText, pairs: list[Pair], of: LlvmType, to: LlvmType, last: LlvmValue
) -> list[LlvmValue]:
    """Emit the loop over two columns at a time, before or at the `last` one; return the products after it."""
    pair, before = to.vector(2), b.block
    column, further = LlvmValue(WORD, "%column"), LlvmValue(WORD, "%further")
    totals = [LlvmValue(pair, f"%total{n}") for n in range(len(pairs))]
    following = [LlvmValue(pair, f"%next{n}") for n in range(len(pairs))]
    b.begin_block("columns")
    b.phi(column, [(WORD(0), before), (further, "columns")])
    for total, after in zip(totals, following, strict=True):
        b.phi(total, [(pair(1.0), before), (after, "columns")])
    for rows, total, after in zip(pairs, totals, following, strict=True):
        first, second = _two_columns(b, rows, of, to, column)
        b.define(after, f"fmul {b.op('fmul', total, first)}, {second.text}")
    b.define(further, f"add {column}, 2")
    b.cbranch(b.compare("icmp slt", further, last), "columns", "end")
    return following


def _two_columns(
    b: FunctionText, rows: Pair, of: LlvmType, to: LlvmType, column: LlvmValue
) -> list[LlvmValue]:
    """Return two columns of two rows, each as a vector of type `to`."""
    upper, lower = (b.load(of.vector(2), b.element(of, row, column), _SIZES[of]) for row in rows)
    if of != to:
        upper, lower = (b.convert("fpext", row, to.vector(2)) for row in (upper, lower))
    return [
        b.value(upper.type, f"shufflevector {upper}, {lower}, <2 x i32> <i32 {n}, i32 {n + 2}>")
        for n in (0, 1)
    ]
