"""Rules for PyTensor's scalar Ops on numbers or, elementwise, on tensors.

`rule(scalar_op, dtype, *inputs)` returns the engine's tensor for the one output, of `dtype` in PyTensor.
Most compute in that dtype: the inputs are cast to it first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pytensor.scalar as ps
import pytensor.scalar.math as psm
from pytensor.scalar.loop import ScalarLoop

import engine.tensor as pt
from engine.graph.variables import Constant
from engine.pytensor.representation import Untranslatable, cast
from engine.pytensor.rules.scalar_loops import scalar_loop

ScalarRule = Callable[..., Any]


def _in_result(function: Callable[..., Any]) -> ScalarRule:
    """Return the rule that computes `function` in the dtype of the result."""

    def rule(scalar_op: Any, dtype: str, *inputs: Any) -> Any:
        return function(*[cast(value, dtype) for value in inputs])

    return rule


def _as_given(function: Callable[..., Any]) -> ScalarRule:
    """Return the rule that computes `function` on the inputs as they are."""
    return lambda scalar_op, dtype, *inputs: function(*inputs)


def _folded(function: Callable[[Any, Any], Any]) -> ScalarRule:
    """Return the rule for any number of inputs, added or multiplied one after the other."""
    return _in_result(lambda *inputs: reduce(function, inputs))


def _cast(scalar_op: Any, dtype: str, value: Any) -> Any:
    return cast(value, dtype)


def _switch(scalar_op: Any, dtype: str, condition: Any, first: Any, second: Any) -> Any:
    return pt.switch(condition, cast(first, dtype), cast(second, dtype))


def _second(scalar_op: Any, dtype: str, first: Any, second: Any) -> Any:
    return pt.second(first, cast(second, dtype))


def _clip(x: Any, low: Any, high: Any) -> Any:
    return pt.switch(pt.lt(x, low), low, pt.switch(pt.gt(x, high), high, x))


def _round_away_from_zero(x: Any) -> Any:
    """Return the nearest whole number, of two the one farther from 0, as C's round."""
    size = pt.abs(x)
    whole = pt.trunc(size)
    is_upper = pt.ge(pt.sub(size, whole), 0.5)
    return pt.mul(pt.sign(x), pt.switch(is_upper, pt.add(whole, 1), whole))


def _polygamma(scalar_op: Any, dtype: str, order: Any, x: Any) -> Any:
    """Return psi or its derivative, if the order says so in the graph."""
    known = int(order.data.flat[0]) if isinstance(order, Constant) and order.data.size == 1 else None
    if known not in (0, 1):
        raise Untranslatable("only the orders 0 and 1 of polygamma have a rule")
    return pt.second(order, (pt.tri_gamma if known else pt.psi)(cast(x, dtype)))


def composite(scalar_op: Any, inputs: Any) -> list[Any]:
    """Return the results of a Composite on the engine's tensors `inputs`, all of the inputs' common shape.

    Raises Untranslatable if one of its Ops has no rule.
    """
    found = _translated(scalar_op.fgraph, inputs)
    return [reduce(lambda result, value: pt.second(value, result), inputs, result) for result in found]


def _translated(fgraph: Any, inputs: Any) -> list[Any]:
    values = dict(zip(fgraph.inputs, inputs, strict=True))
    for node in fgraph.toposort():
        arguments = [_operand(values, variable) for variable in node.inputs]
        results = apply_scalar_op(node.op, [output.type.dtype for output in node.outputs], arguments)
        values.update(zip(node.outputs, results, strict=True))
    return [_operand(values, output) for output in fgraph.outputs]


def _operand(values: dict[Any, Any], variable: Any) -> Any:
    if variable in values:
        return values[variable]
    if not hasattr(variable, "data"):
        raise Untranslatable(f"{variable} in a Composite is not known")
    return pt.constant(variable.data, dtype=variable.type.dtype)


def apply_scalar_op(scalar_op: Any, dtypes: list[str], inputs: Any) -> list[Any]:
    """Return the engine's tensors for `scalar_op` applied to `inputs`, whose outputs have `dtypes`.

    Raises Untranslatable if there is no rule for it.
    """
    if type(scalar_op) is ps.Composite:
        return composite(scalar_op, inputs)
    if type(scalar_op) in LOOPS:
        return scalar_loop(scalar_op, inputs, _translated)
    kind = type(scalar_op)
    rule = RULES.get(kind) or _OF_PYMC.get((kind.__module__, kind.__qualname__))
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
    ps.RoundHalfToEven: pt.round_half_to_even,
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
    psm.Erfcx: pt.erfcx,
    psm.Erfinv: pt.erfinv,
    psm.Erfcinv: pt.erfcinv,
    psm.NdtriExp: pt.ndtri_exp,
    psm.GammaInc: pt.gammainc,
    psm.GammaIncC: pt.gammaincc,
    psm.GammaIncInv: pt.gammaincinv,
    psm.GammaIncCInv: pt.gammainccinv,
    psm.BetaInc: pt.betainc,
    psm.BetaIncInv: pt.betaincinv,
    psm.I0: pt.i0,
    psm.I1: pt.i1,
    psm.Ive: pt.ive,
    psm.Kve: pt.kve,
    psm.J0: pt.j0,
    psm.J1: pt.j1,
    psm.Jv: pt.jv,
    psm.Owens_t: pt.owens_t,
    psm.Hyp2F1: pt.hyp2f1,
    ps.RoundHalfAwayFromZero: _round_away_from_zero,
}
_FOLDED = {ps.Add: pt.add, ps.Mul: pt.mul, ps.AND: pt.and_, ps.OR: pt.or_, ps.XOR: pt.xor}
_GIVEN: dict[type, Callable[..., Any]] = {
    ps.LT: pt.lt,
    ps.LE: pt.le,
    ps.GT: pt.gt,
    ps.GE: pt.ge,
    ps.EQ: pt.eq,
    ps.NEQ: pt.neq,
    ps.IsNan: pt.isnan,
    ps.IsInf: pt.isinf,
}

LOOPS = (ScalarLoop, psm.Grad2F1Loop)
_OF_PYMC: dict[tuple[str, str], ScalarRule] = {
    ("pymc.distributions.dist_math", "I0e"): _in_result(pt.i0e),
    ("pymc.distributions.dist_math", "I1e"): _in_result(pt.i1e),
}
"""The rules for PyMC's scalar Ops by module and name, so that PyMC is not imported for them."""
RULES: dict[type, ScalarRule] = {
    **{op: _in_result(function) for op, function in _COMPUTED.items()},
    **{op: _folded(function) for op, function in _FOLDED.items()},
    **{op: _as_given(function) for op, function in _GIVEN.items()},
    psm.PolyGamma: _polygamma,
    ps.Identity: _cast,
    # Of real numbers, which the engine has.
    ps.Real: _cast,
    ps.Conj: _cast,
    ps.Cast: _cast,
    ps.Switch: _switch,
    ps.Second: _second,
}
