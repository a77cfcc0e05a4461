"""LLVM IR of the scalar operations, whose meaning operations.py defines: numpy's, for each dtype.

No operation can trap: a divisor that would (0, or -1 under the smallest integer) is replaced first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from engine.codegen.numba.polygamma import emit_psi, emit_tri_gamma, in_float64
from engine.lowering.operations import FLOATS, INTEGERS

LLVM_TYPES = {
    "float64": ir.DoubleType(),
    "float32": ir.FloatType(),
    "int64": ir.IntType(64),
    "int32": ir.IntType(32),
    "bool": ir.IntType(1),
}
_LLVM_INTRINSICS = {
    "exp": "llvm.exp",
    "log": "llvm.log",
    "sqrt": "llvm.sqrt",
    "sin": "llvm.sin",
    "cos": "llvm.cos",
    "pow": "llvm.pow",
    "abs": "llvm.fabs",
    "copysign": "llvm.copysign",
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "round": "llvm.rint",
    "exp2": "llvm.exp2",
    "log2": "llvm.log2",
    "log10": "llvm.log10",
    "maximum": "llvm.maximum",
    "minimum": "llvm.minimum",
}
_LIBM = {
    **{op: op for op in ("expm1", "log1p", "tanh", "tan", "sinh", "cosh", "erf", "erfc")},
    **{f"arc{op}": f"a{op}" for op in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "gamma": "tgamma",
}
_SMALLEST = {"int64": -(2**63), "int32": -(2**31)}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "neq": "!="}

Builder = Any
Value = Any
"""llvmlite has no annotations for its types."""


def constant_of(dtype: str, value: bytes) -> ir.Constant:
    """Return the scalar of `dtype` whose little-endian bytes are `value`, bit for bit."""
    if dtype == "bool":
        return LLVM_TYPES[dtype](int(value != b"\0"))
    bits = int.from_bytes(value, "little", signed=True)
    if dtype in FLOATS:
        return ir.Constant(ir.IntType(8 * len(value)), bits).bitcast(LLVM_TYPES[dtype])
    return LLVM_TYPES[dtype](bits)


def emit_operation(builder: Builder, op: str, dtypes: tuple[str, ...], arguments: list[Value]) -> Value:
    """Emit `op` of `arguments` (of dtype dtypes[0], but for the condition of `where`); return the result."""
    dtype = dtypes[0]
    if op == "cast":
        return _cast(builder, dtype, dtypes[1], arguments[0])
    if op == "where":
        return builder.select(*arguments)
    if op == "identity":
        return arguments[0]
    if op in _COMPARISONS:
        return _compare(builder, _COMPARISONS[op], dtype, *arguments)
    if dtype in FLOATS:
        return _emit_float(builder, op, dtype, arguments)
    return (_INTEGER_OPERATIONS if dtype in INTEGERS else _BOOL_OPERATIONS)[op](builder, *arguments)


def _compare(b: Builder, operator: str, dtype: str, x: Value, y: Value) -> Value:
    if dtype not in FLOATS:
        return (b.icmp_unsigned if dtype == "bool" else b.icmp_signed)(operator, x, y)
    return b.fcmp_unordered("!=", x, y) if operator == "!=" else b.fcmp_ordered(operator, x, y)


# ---- floats


def _emit_float(b: Builder, op: str, dtype: str, arguments: list[Value]) -> Value:
    if op in _LLVM_INTRINSICS:
        return _call_intrinsic(b, op, *arguments)
    if op in _LIBM:
        return _call_libm(b, _LIBM[op], *arguments)
    return _FLOAT_OPERATIONS[op](b, *arguments)


def _call_intrinsic(b: Builder, op: str, *arguments: Value) -> Value:
    operand = arguments[0].type
    function_type = ir.FunctionType(operand, [operand] * len(arguments))
    return b.call(b.module.declare_intrinsic(_LLVM_INTRINSICS[op], [operand], function_type), arguments)


def _call_libm(b: Builder, name: str, *arguments: Value) -> Value:
    """Call the function `name` of libm for doubles, or its variant for floats."""
    operand = arguments[0].type
    name = name if isinstance(operand, ir.DoubleType) else f"{name}f"
    function = b.module.globals.get(name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(operand, [operand] * len(arguments)), name)
        function.attributes.add("readnone")
        function.attributes.add("nounwind")
    return b.call(function, arguments)


def _is_infinite(b: Builder, x: Value) -> Value:
    return b.fcmp_ordered("==", _call_intrinsic(b, "abs", x), x.type(math.inf))


def _gammaln(b: Builder, x: Value) -> Value:
    """libm's lgamma; for minus infinity, SciPy's value."""
    smallest = x.type(-math.inf)
    return b.select(b.fcmp_ordered("==", x, smallest), smallest, _call_libm(b, "lgamma", x))


def _polygamma(emit: Any) -> Callable[[Builder, Value], Value]:
    def emit_operation(b: Builder, x: Value) -> Value:
        return in_float64(emit, b, x, lambda op, value: _emit_float(b, op, "float64", [value]))

    return emit_operation


def _is_nan(b: Builder, x: Value) -> Value:
    return b.fcmp_unordered("uno", x, x)


def _float_sign(b: Builder, x: Value) -> Value:
    zero, one = x.type(0.0), x.type(1.0)
    signed = b.select(b.fcmp_ordered("<", x, zero), x.type(-1.0), b.select(_is_nan(b, x), x, zero))
    return b.select(b.fcmp_ordered(">", x, zero), one, signed)


def _small_exponential(b: Builder, x: Value) -> Value:
    """exp(-|x|), which does not overflow, and keeps small numbers."""
    return _call_intrinsic(b, "exp", b.fneg(_call_intrinsic(b, "abs", x)))


def _sigmoid(b: Builder, x: Value) -> Value:
    small, one = _small_exponential(b, x), x.type(1.0)
    numerator = b.select(b.fcmp_ordered("<", x, x.type(0.0)), small, one)
    return b.fdiv(numerator, b.fadd(one, small))


def _softplus(b: Builder, x: Value) -> Value:
    positive = b.select(b.fcmp_ordered(">", x, x.type(0.0)), x, x.type(0.0))
    return b.fadd(positive, _call_libm(b, "log1p", _small_exponential(b, x)))


def _is_opposite(b: Builder, remainder: Value, y: Value) -> Value:
    """Return True if C's remainder is not 0 and has another sign than `y`: then Python's is one divisor
    more.
    """
    zero = y.type(0.0)
    opposite = b.xor(b.fcmp_ordered("<", y, zero), b.fcmp_ordered("<", remainder, zero))
    return b.and_(b.fcmp_unordered("!=", remainder, zero), opposite)


def _float_mod(b: Builder, x: Value, y: Value) -> Value:
    zero = x.type(0.0)
    remainder = b.frem(x, y)
    moved = b.select(_is_opposite(b, remainder, y), b.fadd(remainder, y), remainder)
    signed = b.select(b.fcmp_ordered("==", remainder, zero), _call_intrinsic(b, "copysign", zero, y), moved)
    return b.select(b.fcmp_ordered("==", y, zero), remainder, signed)


def _float_floor_div(b: Builder, x: Value, y: Value) -> Value:
    """numpy's npy_divmod, the same as Python's float_divmod: the rounded quotient without the remainder."""
    zero, one = x.type(0.0), x.type(1.0)
    ratio, remainder = b.fdiv(x, y), b.frem(x, y)
    quotient = b.fdiv(b.fsub(x, remainder), y)
    quotient = b.select(_is_opposite(b, remainder, y), b.fsub(quotient, one), quotient)
    whole = _call_intrinsic(b, "floor", quotient)
    rounded = b.select(b.fcmp_ordered(">", b.fsub(quotient, whole), x.type(0.5)), b.fadd(whole, one), whole)
    is_zero = b.fcmp_ordered("==", quotient, zero)
    result = b.select(is_zero, _call_intrinsic(b, "copysign", zero, ratio), rounded)
    return b.select(b.fcmp_ordered("==", y, zero), ratio, result)


_FLOAT_OPERATIONS: dict[str, Callable[..., Value]] = {
    "add": lambda b, x, y: b.fadd(x, y),
    "sub": lambda b, x, y: b.fsub(x, y),
    "mul": lambda b, x, y: b.fmul(x, y),
    "true_div": lambda b, x, y: b.fdiv(x, y),
    "floor_div": _float_floor_div,
    "mod": _float_mod,
    "neg": lambda b, x: b.fneg(x),
    "sqr": lambda b, x: b.fmul(x, x),
    "sign": _float_sign,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "reciprocal": lambda b, x: b.fdiv(x.type(1.0), x),
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "gammaln": _gammaln,
    "psi": _polygamma(emit_psi),
    "tri_gamma": _polygamma(emit_tri_gamma),
}


# ---- integers


def _integer_division(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Return Python's quotient and remainder; 0 and 0 by 0, the wrapped negative of `x` and 0 by -1."""
    zero, one = x.type(0), x.type(1)
    by_zero = b.icmp_signed("==", y, zero)
    by_minus_one = b.icmp_signed("==", y, x.type(-1))
    divisor = b.select(b.or_(by_zero, by_minus_one), one, y)
    quotient, remainder = b.sdiv(x, divisor), b.srem(x, divisor)
    opposite = b.icmp_signed("<", b.xor(remainder, divisor), zero)
    moved = b.and_(b.icmp_signed("!=", remainder, zero), opposite)
    quotient = b.select(moved, b.sub(quotient, one), quotient)
    remainder = b.select(moved, b.add(remainder, divisor), remainder)
    quotient = b.select(by_minus_one, b.sub(zero, x), quotient)
    return b.select(by_zero, zero, quotient), remainder


def _integer_power(b: Builder, x: Value, exponent: Value) -> Value:
    """Exponentiation by squaring, from the lowest bit of the exponent until no bit is left."""
    zero, one = x.type(0), x.type(1)
    before = b.block
    loop, after = b.append_basic_block("power"), b.append_basic_block("power.end")
    b.branch(loop)
    b.position_at_end(loop)
    result, square, left = (b.phi(x.type) for _ in range(3))
    odd = b.icmp_signed("!=", b.and_(left, one), zero)
    following = b.select(odd, b.mul(result, square), result)
    squared, shifted = b.mul(square, square), b.lshr(left, one)
    for phi, initial, next_value in (
        (result, one, following),
        (square, x, squared),
        (left, exponent, shifted),
    ):
        phi.add_incoming(initial, before)
        phi.add_incoming(next_value, loop)
    b.cbranch(b.icmp_signed("!=", shifted, zero), loop, after)
    b.position_at_end(after)
    return following


def _integer_sign(b: Builder, x: Value) -> Value:
    positive = b.zext(b.icmp_signed(">", x, x.type(0)), x.type)
    return b.sub(positive, b.zext(b.icmp_signed("<", x, x.type(0)), x.type))


_INTEGER_OPERATIONS: dict[str, Callable[..., Value]] = {
    "add": lambda b, x, y: b.add(x, y),
    "sub": lambda b, x, y: b.sub(x, y),
    "mul": lambda b, x, y: b.mul(x, y),
    "floor_div": lambda b, x, y: _integer_division(b, x, y)[0],
    "mod": lambda b, x, y: _integer_division(b, x, y)[1],
    "pow": _integer_power,
    "maximum": lambda b, x, y: b.select(b.icmp_signed(">=", x, y), x, y),
    "minimum": lambda b, x, y: b.select(b.icmp_signed("<=", x, y), x, y),
    "neg": lambda b, x: b.sub(x.type(0), x),
    "sqr": lambda b, x: b.mul(x, x),
    "abs": lambda b, x: b.select(b.icmp_signed("<", x, x.type(0)), b.sub(x.type(0), x), x),
    "sign": _integer_sign,
    "and_": lambda b, x, y: b.and_(x, y),
    "or_": lambda b, x, y: b.or_(x, y),
    "xor": lambda b, x, y: b.xor(x, y),
    "invert": lambda b, x: b.xor(x, x.type(-1)),
    **{op: lambda b, x: LLVM_TYPES["bool"](0) for op in ("isnan", "isinf")},
    **{op: lambda b, x: x for op in ("floor", "ceil", "trunc", "round")},
}

_BOOL_OPERATIONS: dict[str, Callable[..., Value]] = {
    "add": lambda b, x, y: b.or_(x, y),
    "mul": lambda b, x, y: b.and_(x, y),
    "maximum": lambda b, x, y: b.or_(x, y),
    "minimum": lambda b, x, y: b.and_(x, y),
    "abs": lambda b, x: x,
    "sqr": lambda b, x: x,
    "and_": lambda b, x, y: b.and_(x, y),
    "or_": lambda b, x, y: b.or_(x, y),
    "xor": lambda b, x, y: b.xor(x, y),
    "invert": lambda b, x: b.xor(x, x.type(1)),
    **{op: lambda b, x: LLVM_TYPES["bool"](0) for op in ("isnan", "isinf")},
    **{op: lambda b, x: x for op in ("floor", "ceil", "trunc", "round")},
}


# ---- conversions


def _cast(b: Builder, source: str, target: str, x: Value) -> Value:
    if source == target:
        return x
    if target == "bool":
        return (
            b.fcmp_unordered("!=", x, x.type(0.0)) if source in FLOATS else b.icmp_signed("!=", x, x.type(0))
        )
    to = LLVM_TYPES[target]
    if source == "bool":
        return b.uitofp(x, to) if target in FLOATS else b.zext(x, to)
    if source in FLOATS:
        return _from_float(b, source, target, x)
    if target in FLOATS:
        return b.sitofp(x, to)
    return b.sext(x, to) if target == "int64" else b.trunc(x, to)


def _from_float(b: Builder, source: str, target: str, x: Value) -> Value:
    to = LLVM_TYPES[target]
    if target in FLOATS:
        return b.fpext(x, to) if target == "float64" else b.fptrunc(x, to)
    smallest = _SMALLEST[target]
    below = float(smallest)
    holds_fractions_below = source == "float64" and target == "int32"
    lower = (
        b.fcmp_ordered(">", x, x.type(below - 1.0))
        if holds_fractions_below
        else b.fcmp_ordered(">=", x, x.type(below))
    )
    fits = b.and_(lower, b.fcmp_ordered("<", x, x.type(-below)))
    return b.select(fits, b.fptosi(x, to), to(smallest))
