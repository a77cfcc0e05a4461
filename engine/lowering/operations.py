"""The scalar operations of kernels: the number and dtypes of their arguments, and the dtype of their result.

They mean what numpy's do for arrays of that dtype: maximum and minimum pass NaN on (and of two zeros
return either), integers wrap at their own width, `floor_div` and `mod` have Python's sign and give 0
for an integer divisor 0, bools add as `or` and multiply as `and`. An int64 and a uint64 compare as the
numbers they are. `pow` of integers takes an exponent of at least 0: the builder of the kernel tests it
first (NEGATIVE_POWER). Bits shifted by a negative number, or by
more than there are, are all gone. `maximum_of_numbers` and `minimum_of_numbers`, of floats, are faster, and
anything if an argument is NaN.

A float cast to an int32 or int64 that cannot hold it gives the smallest integer, as numpy does on x86-64.
A cast to 8 or 16 bits goes through int32, one to uint32 through int64: the low bits are kept. A cast to
uint64 goes through int64 below 2**63, and above it through the int64 of the float less 2**63.
"""

from __future__ import annotations

from msgspec import Struct

from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import COMPUTED, ITEM_SIZES
from engine.scalar.embedded import Embedded
from engine.scalar.special import SPECIAL_FUNCTIONS

FLOATS = ("float64", "float32")
SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint64", "uint32", "uint16", "uint8")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
DTYPES = COMPUTED


class OperandTypes(Struct, frozen=True):
    """The types that an operation takes: `arity` arguments of one dtype out of `dtypes`.

    The result is of that dtype, or bool if it `compares`. An operation that compares takes an int64 and a
    uint64, too.
    """

    arity: int
    dtypes: tuple[str, ...]
    compares: bool = False


SIGNATURES = {
    **{op: OperandTypes(2, DTYPES) for op in ("add", "mul", "maximum", "minimum")},
    **{op: OperandTypes(2, NUMBERS) for op in ("sub", "floor_div", "mod", "pow")},
    **{op: OperandTypes(2, (*INTEGERS, "bool")) for op in ("and_", "or_", "xor")},
    **{op: OperandTypes(2, INTEGERS) for op in ("left_shift", "right_shift")},
    **{op: OperandTypes(2, DTYPES, compares=True) for op in ("lt", "le", "gt", "ge", "eq", "neq")},
    "identity": OperandTypes(1, tuple(ITEM_SIZES)),
    **{op: OperandTypes(1, DTYPES) for op in ("abs", "sqr")},
    **{op: OperandTypes(1, NUMBERS) for op in ("neg", "sign")},
    **{op: OperandTypes(1, FLOATS) for op in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh")},
    **{op: OperandTypes(1, FLOATS) for op in ("sigmoid", "softplus", "log1mexp", "reciprocal")},
    **{op: OperandTypes(1, FLOATS) for op in ("exp2", "log2", "log10", "tan", "arcsin", "arccos", "arctan")},
    **{
        op: OperandTypes(1, FLOATS) for op in ("sinh", "cosh", "arcsinh", "arccosh", "arctanh", "erf", "erfc")
    },
    **{op: OperandTypes(1, FLOATS) for op in ("gamma", "gammaln", "psi", "tri_gamma")},
    **{op: OperandTypes(1, DTYPES) for op in ("floor", "ceil", "trunc", "round")},
    **{op: OperandTypes(2, FLOATS) for op in ("true_div", "arctan2", "hypot", "copysign", "nextafter")},
    **{op: OperandTypes(2, FLOATS) for op in ("maximum_of_numbers", "minimum_of_numbers")},
    **{op: OperandTypes(arity, FLOATS) for op, arity in SPECIAL_FUNCTIONS.items()},
    "signbit": OperandTypes(1, FLOATS, compares=True),
    "invert": OperandTypes(1, (*INTEGERS, "bool")),
    **{op: OperandTypes(1, DTYPES, compares=True) for op in ("isnan", "isinf")},
}
"""All operations but `cast` (any dtype to any) and `where` (a bool, then two of one dtype)."""

OPERATIONS = frozenset(SIGNATURES) | {"cast", "where"}


def check_operation(op: str | Embedded, arguments: tuple[str, ...], result: str) -> None:
    """Raise InvalidKernel if `op` does not take `arguments` or does not give `result` (dtypes)."""
    if result not in ITEM_SIZES:
        raise InvalidKernel("typing", str(op), f"a result of dtype {result}, which kernels do not have")
    if not _accepts(op, arguments, result):
        raise InvalidKernel("typing", str(op), f"it does not take ({', '.join(arguments)}) and give {result}")


def _accepts(op: str | Embedded, arguments: tuple[str, ...], result: str) -> bool:
    if isinstance(op, Embedded):
        return (op.arguments, op.result) == (arguments, result)
    if op == "cast":
        return len(arguments) == 1 and arguments[0] in COMPUTED and result in COMPUTED
    if op == "where":
        return arguments == ("bool", result, result)
    signature = SIGNATURES.get(op)
    if signature is None or len(arguments) != signature.arity:
        return False
    operand = arguments[0]
    if signature.compares and set(arguments) == {"int64", "uint64"}:
        return result == "bool"
    expected = "bool" if signature.compares else operand
    return operand in signature.dtypes and set(arguments) == {operand} and result == expected
