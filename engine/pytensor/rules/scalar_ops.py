"""Rules for PyTensor's scalar Ops on numbers or, elementwise, on tensors.

`rule(scalar_op, dtype, *inputs)` returns the engine's tensor for the one output, of `dtype` in PyTensor.
Most compute in that dtype: the inputs are cast to it first, and a result of a small integer dtype is
brought back into its range.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pytensor.scalar as ps
import pytensor.scalar.math as psm

import engine.tensor as pt
from engine.pytensor.representation import Untranslatable, engine_dtype, narrowed

ScalarRule = Callable[..., Any]


def _in_result(function: Callable[..., Any]) -> ScalarRule:
    """Return the rule that computes `function` in the dtype of the result."""

    def rule(scalar_op: Any, dtype: str, *inputs: Any) -> Any:
        due = engine_dtype(dtype)
        return narrowed(function(*[pt.cast(value, due) for value in inputs]), dtype)

    return rule


def _as_given(function: Callable[..., Any]) -> ScalarRule:
    """Return the rule that computes `function` on the inputs as they are."""
    return lambda scalar_op, dtype, *inputs: function(*inputs)


def _folded(function: Callable[[Any, Any], Any]) -> ScalarRule:
    """Return the rule for any number of inputs, added or multiplied one after the other."""
    return _in_result(lambda *inputs: reduce(function, inputs))


def _cast(scalar_op: Any, dtype: str, value: Any) -> Any:
    return narrowed(value, dtype)


def _switch(scalar_op: Any, dtype: str, condition: Any, first: Any, second: Any) -> Any:
    due = engine_dtype(dtype)
    return pt.switch(condition, pt.cast(first, due), pt.cast(second, due))


def _second(scalar_op: Any, dtype: str, first: Any, second: Any) -> Any:
    return pt.second(first, narrowed(second, dtype))


def _clip(x: Any, low: Any, high: Any) -> Any:
    return pt.switch(pt.lt(x, low), low, pt.switch(pt.gt(x, high), high, x))


def _composite(scalar_op: Any, dtype: str, *inputs: Any) -> Any:
    (result,) = composite(scalar_op, inputs)
    return result


def composite(scalar_op: Any, inputs: Any) -> list[Any]:
    """Return the results of a Composite on the engine's tensors `inputs`, all of the inputs' common shape.

    Raises Untranslatable if one of its Ops has no rule.
    """
    values = dict(zip(scalar_op.fgraph.inputs, inputs, strict=True))
    for node in scalar_op.fgraph.toposort():
        arguments = [_operand(values, variable) for variable in node.inputs]
        results = apply_scalar_op(node.op, [output.type.dtype for output in node.outputs], arguments)
        values.update(zip(node.outputs, results, strict=True))
    found = [_operand(values, output) for output in scalar_op.fgraph.outputs]
    return [reduce(lambda result, value: pt.second(value, result), inputs, result) for result in found]


def _operand(values: dict[Any, Any], variable: Any) -> Any:
    if variable in values:
        return values[variable]
    if not hasattr(variable, "data"):
        raise Untranslatable(f"{variable} in a Composite is not known")
    return pt.constant(variable.data, dtype=engine_dtype(variable.type.dtype))


def apply_scalar_op(scalar_op: Any, dtypes: list[str], inputs: Any) -> list[Any]:
    """Return the engine's tensors for `scalar_op` applied to `inputs`, whose outputs have `dtypes`.

    Raises Untranslatable if there is no rule for it.
    """
    if type(scalar_op) is ps.Composite:
        return composite(scalar_op, inputs)
    rule = RULES.get(type(scalar_op))
    if rule is None:
        raise Untranslatable(f"there is no rule for {scalar_op}")
    return [rule(scalar_op, dtypes[0], *inputs)]


_COMPUTED: dict[type, Callable[..., Any]] = {
    ps.Sub: pt.sub,
    ps.TrueDiv: pt.true_div,
    ps.IntDiv: pt.floor_div,
    ps.Mod: pt.mod,
    ps.Pow: pt.pow,
    ps.Neg: pt.neg,
    ps.Reciprocal: pt.reciprocal,
    ps.Sqr: pt.sqr,
    ps.Sqrt: pt.sqrt,
    ps.Abs: pt.abs,
    ps.Sign: pt.sign,
    ps.Maximum: pt.maximum,
    ps.Minimum: pt.minimum,
    ps.Clip: _clip,
    ps.Invert: pt.invert,
    ps.Ceil: pt.ceil,
    ps.Floor: pt.floor,
    ps.Trunc: pt.trunc,
    ps.RoundHalfToEven: pt.round,
    ps.Exp: pt.exp,
    ps.Exp2: pt.exp2,
    ps.Expm1: pt.expm1,
    ps.Log: pt.log,
    ps.Log1p: pt.log1p,
    ps.Log2: pt.log2,
    ps.Log10: pt.log10,
    ps.Sin: pt.sin,
    ps.Cos: pt.cos,
    ps.Tan: pt.tan,
    ps.ArcSin: pt.arcsin,
    ps.ArcCos: pt.arccos,
    ps.ArcTan: pt.arctan,
    ps.ArcTan2: pt.arctan2,
    ps.Sinh: pt.sinh,
    ps.Cosh: pt.cosh,
    ps.Tanh: pt.tanh,
    ps.ArcSinh: pt.arcsinh,
    ps.ArcCosh: pt.arccosh,
    ps.ArcTanh: pt.arctanh,
    psm.Sigmoid: pt.sigmoid,
    psm.Softplus: pt.softplus,
    psm.Log1mexp: pt.log1mexp,
    psm.Erf: pt.erf,
    psm.Erfc: pt.erfc,
    psm.Gamma: pt.gamma,
    psm.GammaLn: pt.gammaln,
    psm.Psi: pt.psi,
    psm.TriGamma: pt.tri_gamma,
}
_FOLDED = {ps.Add: pt.add, ps.Mul: pt.mul, ps.AND: pt.and_, ps.OR: pt.or_, ps.XOR: pt.xor}
_GIVEN = {
    ps.LT: pt.lt,
    ps.LE: pt.le,
    ps.GT: pt.gt,
    ps.GE: pt.ge,
    ps.EQ: pt.eq,
    ps.NEQ: pt.neq,
    ps.IsNan: pt.isnan,
    ps.IsInf: pt.isinf,
}

RULES: dict[type, ScalarRule] = {
    **{op: _in_result(function) for op, function in _COMPUTED.items()},
    **{op: _folded(function) for op, function in _FOLDED.items()},
    **{op: _as_given(function) for op, function in _GIVEN.items()},
    ps.Identity: _cast,
    ps.Cast: _cast,
    ps.Switch: _switch,
    ps.Second: _second,
}
