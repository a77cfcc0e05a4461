"""The elementary functions by name, and their definitions as text, which a module takes in.

The definitions differ between CPU levels, because some levels have fused operations. Calls inside loops
are inlined, so that the loops are vectorized, unless there are very many; code that runs once calls one
function.
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
from engine.codegen.llvm.elementary.large_numbers import define_for_large, keep_variants
from engine.codegen.llvm.elementary.logarithm import (
    emit_log,
    emit_log1p,
    emit_log2,
    emit_log10,
    emit_softplus,
)
from engine.codegen.llvm.elementary.trigonometric import emit_arctan, emit_cos, emit_sin, emit_tan
from engine.codegen.llvm.ir_text import DOUBLE, FLOAT, FunctionText, LlvmValue

_EMITTERS: dict[str, Callable[[FunctionText, LlvmValue], LlvmValue]] = {
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
    "log1p": emit_log1p,
    "log2": emit_log2,
    "sigmoid": emit_sigmoid,
    "sin": emit_sin,
    "sinh": emit_sinh,
    "softplus": emit_softplus,
    "tan": emit_tan,
    "tanh": emit_tanh,
}
ELEMENTARY = frozenset(_EMITTERS)
"""The scalar operations that are computed here, for float64 and float32."""

_PREFIX = "elementary"
_MOST_INLINED = 32
"""Inlined calls of a kernel: each takes about 4 ms to compile, and then saves 2 to 15 ns an element."""
_IN_LOOP, _ONCE = "#0", "#1"


def call_elementary(b: FunctionText, op: str, x: LlvmValue) -> LlvmValue:
    """Emit a call of the function of `op` for the type of `x`."""
    name = f"{_PREFIX}.{op}.{x.type.suffix}"
    b.elementary.append(name)
    return b.value(x.type, f"call {x.type.name} @{name}({x}) {_IN_LOOP if b.loop_depth else _ONCE}")


def define_elementary(called: Sequence[str], has_fma: bool, declared: dict[str, str]) -> list[str]:
    """Return the text of the functions `called`, and of `declared` and all else that they declare."""
    defined = {name: _definition(name, has_fma) for name in called}
    large = dict.fromkeys(name for _, _, needed in defined.values() for name in needed)
    texts = [text for text, _, _ in defined.values()]
    for name in large:
        text, declarations = define_for_large(name)
        texts.append(text)
        declared = declared | declarations
    for _, declarations, _ in defined.values():
        declared = declared | declarations
    inlines = "alwaysinline" if len(called) <= _MOST_INLINED else "noinline"
    attributes = f"attributes {_IN_LOOP} = {{ {inlines} }}", f"attributes {_ONCE} = {{ noinline }}"
    return [*texts, *keep_variants(large), *declared.values(), *attributes]


@cache
def _definition(name: str, has_fma: bool) -> tuple[str, dict[str, str], list[str]]:
    """Return the text of a function, what it declares, and the functions for large numbers it needs."""
    _, op, suffix = name.split(".")
    of = DOUBLE if suffix == DOUBLE.suffix else FLOAT
    b = FunctionText(has_fma=has_fma)
    result = _EMITTERS[op](b, LlvmValue(of, "%x"))
    head = f"define internal {of.name} @{name}({of.name} %x) nounwind willreturn memory(none) {{"
    return "\n".join([head, "start:", *b.lines, f"  ret {result}", "}"]), b.declarations, b.elementary
