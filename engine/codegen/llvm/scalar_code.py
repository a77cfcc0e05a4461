"""LLVM IR of the scalar operations, whose meaning operations.py defines: numpy's, for each dtype.

No operation can trap: a divisor that would (0, or -1 under the smallest integer) is replaced first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from engine.codegen.llvm.elementary.library import ELEMENTARY, call_elementary
from engine.codegen.llvm.ir_text import BIT, DOUBLE, FLOAT, INT32, WORD, FunctionText, LlvmType, LlvmValue
from engine.codegen.llvm.polygamma import emit_psi, emit_tri_gamma, in_float64
from engine.lowering.operations import FLOATS, SIGNED, UNSIGNED
from engine.runtime.externals import special_symbol
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.scalar.special import SPECIAL_FUNCTIONS

LLVM_TYPES = {
    "float64": DOUBLE,
    "float32": FLOAT,
    "bool": BIT,
    "int64": WORD,
    "int32": LlvmType("i32"),
    "int16": LlvmType("i16"),
    "int8": LlvmType("i8"),
    "uint64": WORD,
    "uint32": LlvmType("i32"),
    "uint16": LlvmType("i16"),
    "uint8": LlvmType("i8"),
    # Elements that are only moved are words of their size.
    "complex64": WORD,
    "complex128": LlvmType("i128"),
    "float16": LlvmType("i16"),
}
_LLVM_INTRINSICS = {
    "sqrt": "llvm.sqrt",
    "abs": "llvm.fabs",
    "copysign": "llvm.copysign",
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "round": "llvm.rint",
}
_LIBM = {
    **{f"arc{op}": f"a{op}" for op in ("sin", "cos", "tan2", "sinh", "cosh", "tanh")},
    "gamma": "tgamma",
    "hypot": "hypot",
    "nextafter": "nextafter",
}
_SMALLEST = {"int64": -(2**63), "int32": -(2**31)}
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""The relation of y to x for each of x to y."""
_COMPARISONS = {op: op for op in ("lt", "le", "gt", "ge", "eq")} | {"neq": "ne"}

_PURE = "nounwind willreturn memory(none)"


def constant_of(dtype: str, value: bytes) -> LlvmValue:
    """Return the scalar of `dtype` whose little-endian bytes are `value`, bit for bit."""
    of = LLVM_TYPES[dtype]
    if dtype == "bool":
        return of(value != b"\0")
    bits = int.from_bytes(value, "little", signed=True)
    return LlvmValue(of, f"bitcast (i{8 * len(value)} {bits} to {of.name})") if dtype in FLOATS else of(bits)


def emit_operation(
    builder: FunctionText, op: str, dtypes: tuple[str, ...], arguments: list[LlvmValue]
) -> LlvmValue:
    """Emit `op` of `arguments`, which have `dtypes`, and return the result.

    The dtypes of a cast are that of its argument and that of its result.
    """
    dtype = dtypes[0]
    if op == "cast":
        return _cast(builder, dtype, dtypes[1], arguments[0])
    if op == "where":
        return builder.select(*arguments)
    if op == "identity":
        return arguments[0]
    if op in _COMPARISONS:
        return _compare(builder, _COMPARISONS[op], dtypes, *arguments)
    if dtype in FLOATS:
        return _emit_float(builder, op, dtype, arguments)
    return _DISCRETE_OPERATIONS[dtype][op](builder, *arguments)


def _compare(
    b: FunctionText, relation: str, dtypes: tuple[str, ...], x: LlvmValue, y: LlvmValue
) -> LlvmValue:
    if dtypes[0] in FLOATS:
        return b.compare(f"fcmp {'u' if relation == 'ne' else 'o'}{relation}", x, y)
    if dtypes == ("int64", "uint64"):
        return _compare_with_unsigned(b, relation, x, y)
    if dtypes == ("uint64", "int64"):
        return _compare_with_unsigned(b, _TURNED.get(relation, relation), y, x)
    if relation in ("eq", "ne"):
        return b.compare(f"icmp {relation}", x, y)
    return b.compare(f"icmp {'s' if dtypes[0] in SIGNED else 'u'}{relation}", x, y)


def _compare_with_unsigned(b: FunctionText, relation: str, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Emit a comparison of an int64 with a uint64: a negative number is less than all of them."""
    bits = b.compare(f"icmp {relation if relation in ('eq', 'ne') else 'u' + relation}", x, y)
    is_negative = b.compare("icmp slt", x, x.type(0))
    return b.select(is_negative, BIT(relation in ("lt", "le", "ne")), bits)


# ---- floats


def _emit_float(b: FunctionText, op: str, dtype: str, arguments: list[LlvmValue]) -> LlvmValue:
    if op in ELEMENTARY:
        return call_elementary(b, op, arguments)
    if op in _LLVM_INTRINSICS:
        return _call_intrinsic(b, op, *arguments)
    if op in _LIBM:
        return _call_libm(b, _LIBM[op], *arguments)
    if op in SPECIAL_FUNCTIONS:
        return _call_special(b, op, *arguments)
    return _FLOAT_OPERATIONS[op](b, *arguments)


def _call_intrinsic(b: FunctionText, op: str, *arguments: LlvmValue) -> LlvmValue:
    operand = arguments[0].type
    return b.call(operand, f"{_LLVM_INTRINSICS[op]}.{operand.suffix}", arguments)


def _call_libm(b: FunctionText, name: str, *arguments: LlvmValue) -> LlvmValue:
    """Call the function `name` of libm for doubles, or its variant for floats."""
    operand = arguments[0].type
    return b.call(operand, name if operand is DOUBLE else f"{name}f", arguments, _PURE)


def _call_special(b: FunctionText, op: str, *arguments: LlvmValue) -> LlvmValue:
    """Call SciPy's function for doubles. Its last argument is Cython's: 0 for no method of a subclass."""
    operand = arguments[0].type
    wide = [x if operand is DOUBLE else b.convert("fpext", x, DOUBLE) for x in arguments]
    found = b.call(DOUBLE, special_symbol(op, len(wide)), [*wide, INT32(0)], _PURE)
    return found if operand is DOUBLE else b.convert("fptrunc", found, operand)


def _extreme(name: str, flags: str) -> Callable[..., LlvmValue]:
    """Return what emits the intrinsic `name` for which zeros are equal (nsz): half the instructions."""

    def emit_extreme(b: FunctionText, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return b.call(x.type, f"llvm.{name}.{x.type.suffix}", (x, y), flags=flags)

    return emit_extreme


def _is_infinite(b: FunctionText, x: LlvmValue) -> LlvmValue:
    return b.compare("fcmp oeq", _call_intrinsic(b, "abs", x), x.type(math.inf))


def _sign_bit(b: FunctionText, x: LlvmValue) -> LlvmValue:
    bits = WORD if x.type is DOUBLE else INT32
    return b.compare("icmp slt", b.convert("bitcast", x, bits), bits(0))


def _gammaln(b: FunctionText, x: LlvmValue) -> LlvmValue:
    """Emit libm's lgamma; for minus infinity, SciPy's value."""
    smallest = x.type(-math.inf)
    return b.select(b.compare("fcmp oeq", x, smallest), smallest, _call_libm(b, "lgamma", x))


def _polygamma(emit: Any) -> Callable[[FunctionText, LlvmValue], LlvmValue]:
    def emit_operation(b: FunctionText, x: LlvmValue) -> LlvmValue:
        return in_float64(emit, b, x, lambda op, value: _emit_float(b, op, "float64", [value]))

    return emit_operation


def _is_nan(b: FunctionText, x: LlvmValue) -> LlvmValue:
    return b.compare("fcmp uno", x, x)


def _float_sign(b: FunctionText, x: LlvmValue) -> LlvmValue:
    zero, one = x.type(0.0), x.type(1.0)
    signed = b.select(b.compare("fcmp olt", x, zero), x.type(-1.0), b.select(_is_nan(b, x), x, zero))
    return b.select(b.compare("fcmp ogt", x, zero), one, signed)


def _is_opposite(b: FunctionText, remainder: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Return the bit of: C's remainder is not 0, with another sign than `y`; Python's is one `y` more."""
    zero = y.type(0.0)
    opposite = b.op("xor", b.compare("fcmp olt", y, zero), b.compare("fcmp olt", remainder, zero))
    return b.op("and", b.compare("fcmp une", remainder, zero), opposite)


def _float_mod(b: FunctionText, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    zero = x.type(0.0)
    remainder = b.op("frem", x, y)
    moved = b.select(_is_opposite(b, remainder, y), b.op("fadd", remainder, y), remainder)
    signed = b.select(b.compare("fcmp oeq", remainder, zero), _call_intrinsic(b, "copysign", zero, y), moved)
    return b.select(b.compare("fcmp oeq", y, zero), remainder, signed)


def _float_floor_div(b: FunctionText, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Emit numpy's npy_divmod, the same as Python's float_divmod: the quotient, rounded."""
    zero, one = x.type(0.0), x.type(1.0)
    ratio, remainder = b.op("fdiv", x, y), b.op("frem", x, y)
    quotient = b.op("fdiv", b.op("fsub", x, remainder), y)
    quotient = b.select(_is_opposite(b, remainder, y), b.op("fsub", quotient, one), quotient)
    whole = _call_intrinsic(b, "floor", quotient)
    rounded = b.select(
        b.compare("fcmp ogt", b.op("fsub", quotient, whole), x.type(0.5)), b.op("fadd", whole, one), whole
    )
    is_zero = b.compare("fcmp oeq", quotient, zero)
    result = b.select(is_zero, _call_intrinsic(b, "copysign", zero, ratio), rounded)
    return b.select(b.compare("fcmp oeq", y, zero), ratio, result)


_FLOAT_OPERATIONS: dict[str, Callable[..., LlvmValue]] = {
    "add": lambda b, x, y: b.op("fadd", x, y),
    "sub": lambda b, x, y: b.op("fsub", x, y),
    "mul": lambda b, x, y: b.op("fmul", x, y),
    "true_div": lambda b, x, y: b.op("fdiv", x, y),
    "floor_div": _float_floor_div,
    "mod": _float_mod,
    "maximum": _extreme("maximum", "nsz"),
    "minimum": _extreme("minimum", "nsz"),
    "maximum_of_numbers": _extreme("maxnum", "nnan nsz"),
    "minimum_of_numbers": _extreme("minnum", "nnan nsz"),
    "neg": lambda b, x: b.op("fneg", x),
    "sqr": lambda b, x: b.op("fmul", x, x),
    "sign": _float_sign,
    "reciprocal": lambda b, x: b.op("fdiv", x.type(1.0), x),
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "signbit": _sign_bit,
    "gammaln": _gammaln,
    "psi": _polygamma(emit_psi),
    "tri_gamma": _polygamma(emit_tri_gamma),
}


# ---- integers


def _integer_division(b: FunctionText, x: LlvmValue, y: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return Python's quotient and remainder; 0 and 0 by 0, the wrapped negative of `x` and 0 by -1."""
    zero, one = x.type(0), x.type(1)
    by_zero = b.compare("icmp eq", y, zero)
    by_minus_one = b.compare("icmp eq", y, x.type(-1))
    divisor = b.select(b.op("or", by_zero, by_minus_one), one, y)
    quotient, remainder = b.op("sdiv", x, divisor), b.op("srem", x, divisor)
    opposite = b.compare("icmp slt", b.op("xor", remainder, divisor), zero)
    moved = b.op("and", b.compare("icmp ne", remainder, zero), opposite)
    quotient = b.select(moved, b.op("sub", quotient, one), quotient)
    remainder = b.select(moved, b.op("add", remainder, divisor), remainder)
    quotient = b.select(by_minus_one, b.op("sub", zero, x), quotient)
    return b.select(by_zero, zero, quotient), remainder


def _integer_power(b: FunctionText, x: LlvmValue, exponent: LlvmValue) -> LlvmValue:
    """Emit squaring, from the lowest bit of the exponent until no bit is left."""
    before, loop, after = b.block, b.fresh("power"), b.fresh("power_end")
    zero, one = x.type(0), x.type(1)
    result, square, left, multiplied, squared, shifted = (
        LlvmValue(x.type, f"%{b.fresh()}") for _ in range(6)
    )
    b.branch(loop)
    b.begin_block(loop)
    b.phi(result, [(one, before), (multiplied, loop)])
    b.phi(square, [(x, before), (squared, loop)])
    b.phi(left, [(exponent, before), (shifted, loop)])
    odd = b.compare("icmp ne", b.op("and", left, one), zero)
    product = b.op("mul", result, square)
    b.define(multiplied, f"select {odd}, {product}, {result}")
    b.define(squared, f"mul {square}, {square.text}")
    b.define(shifted, f"lshr {left}, {one.text}")
    b.cbranch(b.compare("icmp ne", shifted, zero), loop, after)
    b.begin_block(after)
    return multiplied


def _integer_sign(b: FunctionText, x: LlvmValue) -> LlvmValue:
    positive = b.convert("zext", b.compare("icmp sgt", x, x.type(0)), x.type)
    return b.op("sub", positive, b.convert("zext", b.compare("icmp slt", x, x.type(0)), x.type))


def _unsigned_division(b: FunctionText, op: str, x: LlvmValue, y: LlvmValue) -> LlvmValue:
    """Return the quotient ("udiv") or the remainder ("urem"); 0 by 0."""
    zero = x.type(0)
    by_zero = b.compare("icmp eq", y, zero)
    return b.select(by_zero, zero, b.op(op, x, b.select(by_zero, x.type(1), y)))


def _shift(op: str) -> Callable[..., LlvmValue]:
    """Return what emits the shift `op`; "ashr" leaves copies of the sign."""

    def emit_shift(b: FunctionText, x: LlvmValue, count: LlvmValue) -> LlvmValue:
        most = x.type(int(x.type.name[1:]) - 1)
        is_possible = b.compare("icmp ule", count, most)
        if op == "ashr":
            return b.op(op, x, b.select(is_possible, count, most))
        return b.select(is_possible, b.op(op, x, b.select(is_possible, count, most)), x.type(0))

    return emit_shift


_SIGNED_OPERATIONS: dict[str, Callable[..., LlvmValue]] = {
    "add": lambda b, x, y: b.op("add", x, y),
    "sub": lambda b, x, y: b.op("sub", x, y),
    "mul": lambda b, x, y: b.op("mul", x, y),
    "floor_div": lambda b, x, y: _integer_division(b, x, y)[0],
    "mod": lambda b, x, y: _integer_division(b, x, y)[1],
    "pow": _integer_power,
    "maximum": lambda b, x, y: b.select(b.compare("icmp sge", x, y), x, y),
    "minimum": lambda b, x, y: b.select(b.compare("icmp sle", x, y), x, y),
    "neg": lambda b, x: b.op("sub", x.type(0), x),
    "sqr": lambda b, x: b.op("mul", x, x),
    "abs": lambda b, x: b.select(b.compare("icmp slt", x, x.type(0)), b.op("sub", x.type(0), x), x),
    "sign": _integer_sign,
    "and_": lambda b, x, y: b.op("and", x, y),
    "or_": lambda b, x, y: b.op("or", x, y),
    "xor": lambda b, x, y: b.op("xor", x, y),
    "left_shift": _shift("shl"),
    "right_shift": _shift("ashr"),
    "invert": lambda b, x: b.op("xor", x, x.type(-1)),
    **{op: lambda b, x: LLVM_TYPES["bool"](0) for op in ("isnan", "isinf")},
    **{op: lambda b, x: x for op in ("floor", "ceil", "trunc", "round")},
}

_UNSIGNED_OPERATIONS: dict[str, Callable[..., LlvmValue]] = {
    **_SIGNED_OPERATIONS,
    "floor_div": lambda b, x, y: _unsigned_division(b, "udiv", x, y),
    "mod": lambda b, x, y: _unsigned_division(b, "urem", x, y),
    "right_shift": _shift("lshr"),
    "maximum": lambda b, x, y: b.select(b.compare("icmp uge", x, y), x, y),
    "minimum": lambda b, x, y: b.select(b.compare("icmp ule", x, y), x, y),
    "abs": lambda b, x: x,
    "sign": lambda b, x: b.convert("zext", b.compare("icmp ne", x, x.type(0)), x.type),
}

_BOOL_OPERATIONS: dict[str, Callable[..., LlvmValue]] = {
    "add": lambda b, x, y: b.op("or", x, y),
    "mul": lambda b, x, y: b.op("and", x, y),
    "maximum": lambda b, x, y: b.op("or", x, y),
    "minimum": lambda b, x, y: b.op("and", x, y),
    "abs": lambda b, x: x,
    "sqr": lambda b, x: x,
    "and_": lambda b, x, y: b.op("and", x, y),
    "or_": lambda b, x, y: b.op("or", x, y),
    "xor": lambda b, x, y: b.op("xor", x, y),
    "invert": lambda b, x: b.op("xor", x, x.type(1)),
    **{op: lambda b, x: LLVM_TYPES["bool"](0) for op in ("isnan", "isinf")},
    **{op: lambda b, x: x for op in ("floor", "ceil", "trunc", "round")},
}


_DISCRETE_OPERATIONS = {
    **dict.fromkeys(SIGNED, _SIGNED_OPERATIONS),
    **dict.fromkeys(UNSIGNED, _UNSIGNED_OPERATIONS),
    "bool": _BOOL_OPERATIONS,
}


# ---- conversions


def _cast(b: FunctionText, source: str, target: str, x: LlvmValue) -> LlvmValue:
    if source == target:
        return x
    if target == "bool":
        return (
            b.compare("fcmp une", x, x.type(0.0)) if source in FLOATS else b.compare("icmp ne", x, x.type(0))
        )
    to = LLVM_TYPES[target]
    if source in FLOATS:
        return _from_float(b, source, target, x)
    if target in FLOATS:
        return b.convert("sitofp" if source in SIGNED else "uitofp", x, to)
    if source == "bool" or ITEM_SIZES[target] > ITEM_SIZES[source]:
        return b.convert("sext" if source in SIGNED else "zext", x, to)
    return x if ITEM_SIZES[target] == ITEM_SIZES[source] else b.convert("trunc", x, to)


def _from_float(b: FunctionText, source: str, target: str, x: LlvmValue) -> LlvmValue:
    to = LLVM_TYPES[target]
    if target in FLOATS:
        return b.convert("fpext", x, to) if target == "float64" else b.convert("fptrunc", x, to)
    if target in _SMALLEST:
        return _to_signed(b, source, target, x)
    if target == "uint64":
        return _to_uint64(b, source, x)
    through = "int64" if target == "uint32" else "int32"
    return b.convert("trunc", _to_signed(b, source, through, x), to)


def _to_uint64(b: FunctionText, source: str, x: LlvmValue) -> LlvmValue:
    """Emit the conversion by two to int64, as compilers for CPUs without one to uint64."""
    half = x.type(2.0**63)
    is_large = b.compare("fcmp oge", x, half)
    large = _to_signed(b, source, "int64", b.op("fsub", x, half))
    flipped = b.op("xor", large, WORD(_SMALLEST["int64"]))
    return b.select(is_large, flipped, _to_signed(b, source, "int64", x))


def _to_signed(b: FunctionText, source: str, target: str, x: LlvmValue) -> LlvmValue:
    """Emit the conversion to int32 or int64: the smallest for a float that it cannot hold."""
    to = LLVM_TYPES[target]
    smallest = _SMALLEST[target]
    below = float(smallest)
    holds_fractions_below = source == "float64" and target == "int32"
    lower = (
        b.compare("fcmp ogt", x, x.type(below - 1.0))
        if holds_fractions_below
        else b.compare("fcmp oge", x, x.type(below))
    )
    fits = b.op("and", lower, b.compare("fcmp olt", x, x.type(-below)))
    return b.select(fits, b.convert("fptosi", x, to), to(smallest))
