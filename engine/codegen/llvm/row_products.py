"""Products of the rows of a matrix, several rows side by side, each in the order of its elements.

A product waits for the one before it, so the products of a group of rows are a vector, which is multiplied by
one column of the group after the other. The rows of a group are read four columns at a time and exchanged
within vectors of 16 bytes, which every processor has: a group has two rows of doubles, or four of floats,
which are converted after the exchange. Wider vectors are no faster.
"""

from __future__ import annotations

from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, POINTER, WORD, FunctionText, LlvmType, LlvmValue
from engine.lowering.loops import COLUMNS_OF_PRODUCTS, ROWS_OF_PRODUCTS

Rows = list[LlvmValue]
"""The addresses of the rows of a group."""
_TYPES = {"float64": DOUBLE, "float32": FLOAT}
_SIZES = {DOUBLE: 8, FLOAT: 4}
_BYTES = 16
"""Of the vectors in which elements are exchanged."""


def define_row_products(symbol: str) -> tuple[str, dict[str, str]]:
    """Return the text of the function `symbol`, one of ROW_PRODUCTS, and what it declares."""
    of, to = (_TYPES[dtype] for dtype in symbol.split("_")[2:])
    b = FunctionText()
    first, length, rows, results = (LlvmValue(WORD, f"%a{n}") for n in range(4))
    groups = _groups_of_rows(b, of, first, length, rows)
    target, last = b.convert("inttoptr", results, POINTER), b.op("sub", length, WORD(COLUMNS_OF_PRODUCTS - 1))
    one, start = to.vector(_BYTES // _SIZES[of])(1.0), b.block
    b.cbranch(b.compare("icmp sgt", last, WORD(0)), "columns", "end")
    found = _columns(b, groups, of, to, last)
    b.begin_block("end")
    products = [b.arriving((one, start), (product, "columns")) for product in found]
    for n, product in enumerate(products):
        b.store(product, b.element(to, target, WORD(n * one.type.lanes)), _SIZES[to])
    head = f"define internal void @{symbol}({first}, {length}, {rows}, {results}) nounwind {{"
    return "\n".join([head, "start:", *b.lines, "  ret void", "}"]), b.declarations


def _groups_of_rows(
    b: FunctionText, of: LlvmType, first: LlvmValue, length: LlvmValue, rows: LlvmValue
) -> list[Rows]:
    """Return the addresses of the rows in groups: the last row's, where there are fewer."""
    start, last = b.convert("inttoptr", first, POINTER), b.op("sub", rows, WORD(1))
    numbers = [b.call(WORD, "llvm.smin.i64", [WORD(n), last]) for n in range(ROWS_OF_PRODUCTS)]
    addresses = [b.element(of, start, b.op("mul", number, length)) for number in numbers]
    size = _BYTES // _SIZES[of]
    return [addresses[n : n + size] for n in range(0, ROWS_OF_PRODUCTS, size)]


def _columns(
    b: FunctionText, groups: list[Rows], of: LlvmType, to: LlvmType, last: LlvmValue
) -> list[LlvmValue]:
    """Emit the loop over four columns at a time, which ends with the `last` that has three behind it; return
    the products after it."""
    vector, before = to.vector(len(groups[0])), b.block
    column, further = LlvmValue(WORD, "%column"), LlvmValue(WORD, "%further")
    totals = [LlvmValue(vector, f"%total{n}") for n in range(len(groups))]
    following = [LlvmValue(vector, f"%next{n}") for n in range(len(groups))]
    b.begin_block("columns")
    b.phi(column, [(WORD(0), before), (further, "columns")])
    for total, after in zip(totals, following, strict=True):
        b.phi(total, [(vector(1.0), before), (after, "columns")])
    for rows, product, after in zip(groups, totals, following, strict=True):
        *columns, final = _four_columns(b, rows, of, to, column)
        for factors in columns:
            product = b.op("fmul", product, factors)
        b.define(after, f"fmul {product}, {final.text}")
    b.define(further, f"add {column}, {COLUMNS_OF_PRODUCTS}")
    b.cbranch(b.compare("icmp slt", further, last), "columns", "end")
    return following


def _four_columns(
    b: FunctionText, rows: Rows, of: LlvmType, to: LlvmType, column: LlvmValue
) -> list[LlvmValue]:
    """Return the columns from `column` on of a group, each as a vector of type `to`."""
    if of is DOUBLE:
        return [*_two_of_doubles(b, rows, column), *_two_of_doubles(b, rows, b.op("add", column, WORD(2)))]
    columns = _four_of_floats(b, rows, column)
    return [b.convert("fpext", it, to.vector(len(rows))) for it in columns] if of is not to else columns


def _two_of_doubles(b: FunctionText, rows: Rows, column: LlvmValue) -> list[LlvmValue]:
    upper, lower = (b.load(DOUBLE.vector(2), b.element(DOUBLE, row, column), 8) for row in rows)
    return [_picked(b, upper, lower, (n, n + 2)) for n in (0, 1)]


def _four_of_floats(b: FunctionText, rows: Rows, column: LlvmValue) -> list[LlvmValue]:
    read = [b.load(FLOAT.vector(4), b.element(FLOAT, row, column), 4) for row in rows]
    columns = []
    for two in ((0, 4, 1, 5), (2, 6, 3, 7)):
        upper, lower = _picked(b, read[0], read[1], two), _picked(b, read[2], read[3], two)
        columns += [_picked(b, upper, lower, four) for four in ((0, 1, 4, 5), (2, 3, 6, 7))]
    return columns


def _picked(b: FunctionText, x: LlvmValue, y: LlvmValue, numbers: tuple[int, ...]) -> LlvmValue:
    """Return the elements `numbers` of `x` and `y` together."""
    picked = ", ".join(f"i32 {number}" for number in numbers)
    return b.value(x.type, f"shufflevector {x}, {y}, <{len(numbers)} x i32> <{picked}>")
