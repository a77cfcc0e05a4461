"""Operations on numbers: the vocabulary that elementwise operations, fused loops and kernels share."""

from engine.scalar.arithmetic import abs, add, floor_div, mod, mul, neg, reciprocal, sign, sqr, sub, true_div
from engine.scalar.comparison import eq, ge, gt, isnan, le, lt, neq
from engine.scalar.conversion import Cast, identity, second
from engine.scalar.exponential import exp, expm1, log, log1p, sigmoid, softplus
from engine.scalar.logical import and_, invert, or_, xor
from engine.scalar.op import ScalarOp, apply_scalar_op, as_scalar
from engine.scalar.power import pow, sqrt
from engine.scalar.selection import maximum, minimum, where
from engine.scalar.trigonometric import cos, sin, tanh
from engine.scalar.type import ScalarConstant, ScalarType, ScalarVariable, scalar_type

__all__ = [
    "Cast",
    "ScalarConstant",
    "ScalarOp",
    "ScalarType",
    "ScalarVariable",
    "abs",
    "add",
    "and_",
    "apply_scalar_op",
    "as_scalar",
    "cos",
    "eq",
    "exp",
    "expm1",
    "floor_div",
    "ge",
    "gt",
    "identity",
    "invert",
    "isnan",
    "le",
    "log",
    "log1p",
    "lt",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "neg",
    "neq",
    "or_",
    "pow",
    "reciprocal",
    "scalar_type",
    "second",
    "sigmoid",
    "sign",
    "sin",
    "softplus",
    "sqr",
    "sqrt",
    "sub",
    "tanh",
    "true_div",
    "where",
    "xor",
]
