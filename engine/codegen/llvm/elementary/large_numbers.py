"""Functions of libm for numbers that are too large for an elementary function's own code.

Such a number is rare, but a loop with a call of libm is not vectorized. So each function here has variants
for vectors, with a mask of the elements that need it, which call libm only if there are any. LLVM's loop
vectorizer finds them by the attribute of the function for one number.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.codegen.llvm.elementary.variants import PURE, named_variants
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmType, LlvmValue

PREFIX = "large"


def call_for_large(b: FunctionText, name: str, x: LlvmValue) -> LlvmValue:
    """Emit a call of the function `name` of libm, by way of the one that is defined here."""
    symbol = f"{PREFIX}.{name}.{x.type.suffix}"
    b.elementary.append(symbol)
    return b.value(x.type, f"call {x.type.name} @{symbol}({x})")


def define_for_large(symbol: str, widths: Sequence[int]) -> tuple[list[str], str, dict[str, str]]:
    """Return the variants of `symbol` for `widths`, the text of all, and what they declare."""
    _, name, suffix = symbol.split(".")
    of = DOUBLE if suffix == DOUBLE.suffix else FLOAT
    called = name if of is DOUBLE else f"{name}f"
    variants = {width: f"{symbol}.{width}" for width in widths}
    attributes = f"noinline {PURE} {named_variants(symbol, 'M{}v', variants)}"
    lines = [
        f"define internal {of.name} @{symbol}({of.name} %x) {attributes} {{",
        f"  %result = call {of.name} @{called}({of.name} %x)",
        f"  ret {of.name} %result",
        "}",
    ]
    for width in widths:
        lines += _variant(symbol, called, of, width)
    return (
        list(variants.values()),
        "\n".join(lines),
        {called: f"declare {of.name} @{called}({of.name}) {PURE}"},
    )


def _variant(symbol: str, called: str, of: LlvmType, width: int) -> list[str]:
    vector, mask = f"<{width} x {of.name}>", f"<{width} x i1>"
    found = ["zeroinitializer", *(f"%with{n}" for n in range(width))]
    lines = [
        f"define internal {vector} @{symbol}.{width}({vector} %x, {mask} %mask) noinline {PURE} {{",
        "start:",
        f"  %bits = bitcast {mask} %mask to i{width}",
        f"  %any = icmp ne i{width} %bits, 0",
        "  br i1 %any, label %large, label %done",
        "large:",
    ]
    for n in range(width):
        lines += [
            f"  %x{n} = extractelement {vector} %x, i64 {n}",
            f"  %needed{n} = extractelement {mask} %mask, i64 {n}",
            f"  %number{n} = select i1 %needed{n}, {of.name} %x{n}, {of.name} 0.0",
            f"  %result{n} = call {of.name} @{called}({of.name} %number{n})",
            f"  %with{n} = insertelement {vector} {found[n]}, {of.name} %result{n}, i64 {n}",
        ]
    end = f"  %result = phi {vector} [ zeroinitializer, %start ], [ {found[-1]}, %large ]"
    return [*lines, "  br label %done", "done:", end, f"  ret {vector} %result", "}"]
