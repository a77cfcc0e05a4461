"""The elementary functions by name, and their definitions as text, which a module takes in.

The definitions differ between CPU levels, because some levels have fused operations. Calls inside loops
are inlined, so that the loops are vectorized, unless there are very many; code that runs once calls one
function. A function that branches is called in loops too, by whole vectors (variants.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from engine.codegen.llvm.elementary.error_function import emit_erf, emit_erfc
from engine.codegen.llvm.elementary.exponential import (
    emit_cosh,
    emit_exp,
    emit_exp2,
    emit_expm1,
    emit_sigmoid,
    emit_sinh,
    emit_tanh,
)
from engine.codegen.llvm.elementary.large_numbers import define_for_large
from engine.codegen.llvm.elementary.logarithm import (
    emit_log,
    emit_log1mexp,
    emit_log1p,
    emit_log2,
    emit_log10,
    emit_softplus,
)
from engine.codegen.llvm.elementary.power import emit_pow
from engine.codegen.llvm.elementary.quotient import emit_quotient
from engine.codegen.llvm.elementary.trigonometric import emit_arctan, emit_cos, emit_sin, emit_tan
from engine.codegen.llvm.elementary.variants import (
    PURE,
    define_by_vectors,
    keep_variants,
)
from engine.codegen.llvm.ir_text import (
    DOUBLE,
    FLOAT,
    WIDTH_OF_32_BITS,
    WIDTH_OF_64_BITS,
    FunctionText,
    LlvmValue,
)
from engine.runtime.target import has_fma, vector_bits

_EMITTERS: dict[str, Callable[..., LlvmValue]] = {
    "arctan": emit_arctan,
    "cos": emit_cos,
    "cosh": emit_cosh,
    "erf": emit_erf,
    "erfc": emit_erfc,
    "exp": emit_exp,
    "exp2": emit_exp2,
    "expm1": emit_expm1,
    "log": emit_log,
    "log10": emit_log10,
    "log1mexp": emit_log1mexp,
    "log1p": emit_log1p,
    "log2": emit_log2,
    "pow": emit_pow,
    "quotient": emit_quotient,
    "sigmoid": emit_sigmoid,
    "sin": emit_sin,
    "sinh": emit_sinh,
    "softplus": emit_softplus,
    "tan": emit_tan,
    "tanh": emit_tanh,
}
_OF_TWO = frozenset(["pow", "quotient"])
_BRANCHING = frozenset(["pow"])
"""The functions that branch, of two numbers: loops call variants for vectors, and inline none."""
ELEMENTARY = frozenset(_EMITTERS) - {"quotient"}
"""The scalar operations that are computed here, for float64 and float32."""

_PREFIX = "elementary"
_MOST_INLINED = 32
"""Inlined calls of a kernel: each takes about 4 ms to compile, and then saves 2 to 15 ns an element."""
_IN_LOOP, _ONCE, _ALWAYS_INLINED = "#0", "#1", "#2"


def call_elementary(b: FunctionText, op: str, arguments: Sequence[LlvmValue]) -> LlvmValue:
    """Emit a call of the function of `op` for the type of the arguments."""
    return _call(b, op, arguments, _IN_LOOP if b.loop_depth and op not in _BRANCHING else _ONCE)


def call_quotient(b: FunctionText, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Emit x / y in a loop in which `y` does not change."""
    return _call(b, "quotient", (x, y), _ALWAYS_INLINED)


def _call(b: FunctionText, op: str, arguments: Sequence[LlvmValue], attributes: str) -> LlvmValue:
    of = arguments[0].type
    name = f"{_PREFIX}.{op}.{of.suffix}"
    b.elementary.append(name)
    passed = ", ".join(map(str, arguments))
    return b.value(of, f"call {of.name} @{name}({passed}) {attributes}")


def calls_variants(lines: Sequence[str]) -> bool:
    """Return True if the code `lines` calls a function that has variants for vectors."""
    return any(f"@{_PREFIX}.{op}." in line for line in lines for op in _BRANCHING)


def vector_width(lines: Sequence[str]) -> str:
    """Return the node that says how wide the vectors of a loop with the code `lines` are, or "".

    LLVM would compare several widths, which takes long where functions are inlined, and on AVX-512 chooses
    half a register; it would have half a register of floats, too, that become doubles later. A loop with
    other calls or loops inside is left to it.
    """
    calls = [line for line in lines if " call " in line and "@llvm." not in line]
    is_left = any(" = phi " in line or " frem " in line for line in lines)
    if not calls or is_left or not all(f"@{_PREFIX}." in line for line in calls):
        return ""
    has_64_bits = any(" double" in line for line in calls)
    return WIDTH_OF_64_BITS if has_64_bits else WIDTH_OF_32_BITS


def define_elementary(
    called: Sequence[str], level: str, declared: dict[str, str], has_loops: bool
) -> list[str]:
    """Return the text of the functions `called`, and of `declared` and all else that they declare.

    What the calls and the loops around them refer to follows: attributes, and widths of vectors. Only code
    that `has_loops` needs variants for vectors.
    """
    # Quotients are short, and always inlined.
    is_inlined = sum(f"{_PREFIX}.quotient." not in name for name in called) <= _MOST_INLINED
    lanes = vector_bits(level) // 64, vector_bits(level) // 32
    fused, texts, kept = has_fma(level), [], []
    large: dict[str, None] = {}
    for name in dict.fromkeys(called):
        widths = lanes if has_loops and name.split(".")[1] in _BRANCHING else ()
        variants, text, declarations, needed = _definition(name, fused, widths)
        kept += variants
        texts.append(text)
        declared = declared | declarations
        large |= dict.fromkeys(needed)
    for name in large:
        variants, text, declarations = define_for_large(name, lanes)
        kept += variants
        texts.append(text)
        declared = declared | declarations
    said = (
        f"attributes {_IN_LOOP} = {{ {'alwaysinline' if is_inlined else 'noinline'} }}",
        f"attributes {_ONCE} = {{ noinline }}",
        f"attributes {_ALWAYS_INLINED} = {{ alwaysinline }}",
        f"{WIDTH_OF_64_BITS} = {_width(lanes[0] if is_inlined else 0)}",
        f"{WIDTH_OF_32_BITS} = {_width(lanes[1] if is_inlined else 0)}",
    )
    return [*texts, *keep_variants(kept), *declared.values(), *said]


def _width(lanes: int) -> str:
    """Return what says that vectors have so many elements; for 0, LLVM ignores it and chooses."""
    return f'!{{!"llvm.loop.vectorize.width", i32 {lanes}}}'


@cache
def _definition(
    name: str, has_fma: bool, widths: tuple[int, ...]
) -> tuple[list[str], str, dict[str, str], list[str]]:
    """Return a function's variants if it has any for registers of `widths`, its text and theirs, what it
    declares, and the functions for large numbers that it needs."""
    _, op, suffix = name.split(".")
    of = DOUBLE if suffix == DOUBLE.suffix else FLOAT
    if widths:
        variants, lines, declared = define_by_vectors(name, of, widths, _EMITTERS[op], has_fma)
        return variants, "\n".join(lines), declared, []
    b = FunctionText(has_fma=has_fma)
    arguments = [LlvmValue(of, f"%{argument}") for argument in ("xy" if op in _OF_TWO else "x")]
    result = _EMITTERS[op](b, *arguments)
    head = f"define internal {of.name} @{name}({', '.join(map(str, arguments))}) {PURE} {{"
    return [], "\n".join([head, "start:", *b.lines, f"  ret {result}", "}"]), b.declarations, b.elementary
