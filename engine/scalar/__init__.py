"""Operations on numbers: the vocabulary that elementwise operations, fused loops and kernels share."""

from engine.scalar.angles import arccos, arcsin, arctan, arctan2, tan
from engine.scalar.arithmetic import abs, add, floor_div, mod, mul, neg, reciprocal, sign, sqr, sub, true_div
from engine.scalar.bases import exp2, log2, log10
from engine.scalar.comparison import eq, ge, gt, isinf, isnan, le, lt, neq
from engine.scalar.conversion import Cast, identity, second
from engine.scalar.exponential import exp, expm1, log, log1p, sigmoid, softplus
from engine.scalar.gamma import erf, erfc, gamma, gammaln, psi, tri_gamma
from engine.scalar.hyperbolic import arccosh, arcsinh, arctanh, cosh, sinh
from engine.scalar.logical import and_, invert, or_, xor
from engine.scalar.op import ScalarOp, apply_scalar_op, as_scalar
from engine.scalar.power import pow, sqrt
from engine.scalar.rounding import ceil, floor, round, trunc
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
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "as_scalar",
    "ceil",
    "cos",
    "cosh",
    "eq",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_div",
    "gamma",
    "gammaln",
    "ge",
    "gt",
    "identity",
    "invert",
    "isinf",
    "isnan",
    "le",
    "log",
    "log1p",
    "log2",
    "log10",
    "lt",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "neg",
    "neq",
    "or_",
    "pow",
    "psi",
    "reciprocal",
    "round",
    "scalar_type",
    "second",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqr",
    "sqrt",
    "sub",
    "tan",
    "tanh",
    "tri_gamma",
    "true_div",
    "trunc",
    "where",
    "xor",
]
