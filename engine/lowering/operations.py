"""The scalar operations of kernels: the number and dtypes of their arguments, and the dtype of their result.

They mean what numpy's do for arrays of that dtype: maximum and minimum pass NaN on (and of two zeros
return either), integers wrap at their own width, `floor_div` and `mod` have Python's sign and give 0
for an integer divisor 0, bools add as `or` and multiply as `and`. A float cast to an integer that
cannot hold it gives the smallest integer, as numpy does on x86-64. `pow` of integers takes an exponent
of at least 0: the builder of the kernel tests it first (NEGATIVE_POWER).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import ITEM_SIZES
from engine.scalar.embedded import Embedded

FLOATS = ("float64", "float32")
INTEGERS = ("int64", "int32")
NUMBERS = FLOATS + INTEGERS
DTYPES = tuple(ITEM_SIZES)


@dataclass(frozen=True, slots=True)
class OperandTypes:
    """The types that an operation takes: `arity` arguments of one dtype out of `dtypes`.

    The result is of that dtype, or bool if it `compares`.
    """

    arity: int
    dtypes: tuple[str, ...]
    compares: bool = False


SIGNATURES = {
    **{op: OperandTypes(2, DTYPES) for op in ("add", "mul", "maximum", "minimum")},
    **{op: OperandTypes(2, NUMBERS) for op in ("sub", "floor_div", "mod", "pow")},
    **{op: OperandTypes(2, ("int64", "int32", "bool")) for op in ("and_", "or_", "xor")},
    **{op: OperandTypes(2, DTYPES, compares=True) for op in ("lt", "le", "gt", "ge", "eq", "neq")},
    **{op: OperandTypes(1, DTYPES) for op in ("identity", "abs", "sqr")},
    **{op: OperandTypes(1, NUMBERS) for op in ("neg", "sign")},
    **{op: OperandTypes(1, FLOATS) for op in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh")},
    **{op: OperandTypes(1, FLOATS) for op in ("sigmoid", "softplus", "reciprocal")},
    **{op: OperandTypes(1, FLOATS) for op in ("exp2", "log2", "log10", "tan", "arcsin", "arccos", "arctan")},
    **{
        op: OperandTypes(1, FLOATS) for op in ("sinh", "cosh", "arcsinh", "arccosh", "arctanh", "erf", "erfc")
    },
    **{op: OperandTypes(1, FLOATS) for op in ("gamma", "gammaln", "psi", "tri_gamma")},
    **{op: OperandTypes(1, DTYPES) for op in ("floor", "ceil", "trunc", "round")},
    **{op: OperandTypes(2, FLOATS) for op in ("true_div", "arctan2")},
    "invert": OperandTypes(1, ("int64", "int32", "bool")),
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
        return len(arguments) == 1 and arguments[0] in ITEM_SIZES
    if op == "where":
        return arguments == ("bool", result, result)
    signature = SIGNATURES.get(op)
    if signature is None or len(arguments) != signature.arity:
        return False
    operand = arguments[0]
    expected = "bool" if signature.compares else operand
    return operand in signature.dtypes and set(arguments) == {operand} and result == expected
