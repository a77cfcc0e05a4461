"""Variants for vectors of functions that are not inlined: loops that call them are vectorized nevertheless.

LLVM's loop vectorizer finds the variants by an attribute of the function for one number. A function that
branches has a variant of the same definition: it takes a branch if any number of the vector must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.codegen.llvm.ir_text import DOUBLE, FunctionText, LlvmType, LlvmValue

PURE = "nounwind willreturn memory(none)"
Emitter = Callable[..., LlvmValue]


def named_variants(symbol: str, kind: str, variants: Mapping[int, str]) -> str:
    """Return the attribute that names the variants of `symbol` by width; `kind` is of LLVM's ABI: "N{}vv"."""
    named = [f"_ZGV_LLVM_{kind.format(width)}_{symbol}({name})" for width, name in variants.items()]
    return f'"vector-function-abi-variant"="{",".join(named)}"'


def keep_variants(symbols: Sequence[str]) -> list[str]:
    """Return the text that keeps these functions until loops are vectorized."""
    if not symbols:
        return []
    kept = ", ".join(f"ptr @{symbol}" for symbol in symbols)
    return [
        f'@llvm.compiler.used = appending global [{len(symbols)} x ptr] [{kept}], section "llvm.metadata"'
    ]


def define_by_vectors(
    symbol: str, of: LlvmType, lanes: tuple[int, ...], emit: Emitter, has_fma: bool
) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the names of a function of two numbers of type `of` and its variants, the text of all, and what
    they declare.

    `lanes` are the doubles and the floats of a register. Only vectors of a whole register are computed. Other
    results are the first elements of one: that of a single number, and of floats beside doubles.
    """
    doubles, floats = lanes
    whole, part = of.vector(doubles if of is DOUBLE else floats), of.vector(doubles)
    variants = {vector.lanes: f"{symbol}.{vector.lanes}" for vector in (whole, part)}
    b, computed = FunctionText(has_fma=has_fma), variants[whole.lanes]
    result = emit(b, LlvmValue(whole, "%x"), LlvmValue(whole, "%y"))
    text = [_head(computed, whole, "noinline"), "start:", *b.lines, f"  ret {result}", "}"]
    if part != whole:
        text += _first_of(computed, whole, _head(variants[part.lanes], part, "noinline"), part)
    text += _first_of(computed, whole, _head(symbol, of, named_variants(symbol, "N{}vv", variants)), of)
    # The function is kept, too: LLVM would drop a parameter that is always the same constant, and with it
    # the variants.
    return [symbol, *variants.values()], text, b.declarations


def _head(symbol: str, of: LlvmType, attributes: str) -> str:
    return f"define internal {of.name} @{symbol}({of.name} %x, {of.name} %y) {PURE} {attributes} {{"


def _first_of(computed: str, whole: LlvmType, head: str, of: LlvmType) -> list[str]:
    """Return the text of the function that begins with `head`: the first elements of what `computed` returns.

    Its arguments, repeated, make the vectors of type `whole`, so that no element of them is unusual alone.
    """
    part = of if of.lanes else of.vector(1)
    lines = [head]
    for name in ("x", "y"):
        lines.append(f"  %{name}.part = bitcast {of.name} %{name} to {part.name}")
        lines.append(f"  %{name}.all = {_picked(f'%{name}.part', part, whole.lanes)}")
    lines.append(f"  %all = call {whole.name} @{computed}({whole.name} %x.all, {whole.name} %y.all)")
    lines.append(f"  %first = {_picked('%all', whole, part.lanes)}")
    return [*lines, f"  %result = bitcast {part.name} %first to {of.name}", f"  ret {of.name} %result", "}"]


def _picked(value: str, of: LlvmType, count: int) -> str:
    """Return what makes a vector of the first `count` elements of `value`, repeated if it has fewer."""
    places = ", ".join(f"i32 {n % of.lanes}" for n in range(count))
    return f"shufflevector {of.name} {value}, {of.name} poison, <{count} x i32> <{places}>"
