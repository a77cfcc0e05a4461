"""Exponentials that a stable form of what is computed from them reads, and those that nothing reads."""

from __future__ import annotations

from engine.gradient.stable_forms import stable_form
from engine.graph import Apply, FunctionGraph, Variable
from engine.graph.tables import Output
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import add, exp, expm1, log, log1mexp, log1p, neg, second, softplus, sub, true_div, where
from engine.scalar.promotion import COMPILED_FLOATS
from engine.tensor.elemwise import DimShuffle, elemwise
from engine.tensor.matching import DEEPEST, dtype_of, operands_of, scalar_value
from engine.tensor.math import le


@node_rewriter([elemwise(exp), elemwise(expm1)])
def local_exp_of_result(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """exp(softplus(x)) -> 1 + exp(x); expm1(log1mexp(x)) -> -exp(x), and NaN where x is positive.

    Of results that nothing else reads: 1 + exp(x) hides an exponential from a logarithm of a sum, which
    overflows then, and of -exp(x) a logarithm of 1 plus it has no digits left where x is next to 0.
    """
    output, inner = node.outputs[0], softplus if node.op == elemwise(exp) else log1mexp
    operands = operands_of(node.inputs[0], inner)
    if operands is None or any(not isinstance(client.op, Output) for client, _ in fgraph.clients[output]):
        return None
    (x,) = operands
    if dtype_of(x) != dtype_of(output) or dtype_of(x) not in COMPILED_FLOATS:
        return None
    exponential = apply_scalar(exp, x)
    if inner is softplus:
        return [apply_scalar(add, 1.0, exponential)]
    return [apply_scalar(where, le(x, 0), apply_scalar(neg, exponential), float("nan"))]


def is_read_as_exponential(fgraph: FunctionGraph, node: Apply, steps: int = DEEPEST) -> bool:
    """Return True if a logarithm or quotient of a sum with `node`, an exponential, has a form that reads it
    as one, or if a 1 of the other sign is next to it.
    """
    for client, place in fgraph.clients[node.outputs[0]] if steps else ():
        if steps == DEEPEST and _cancels_one(client, place):
            return True
        if client.op in _BETWEEN or isinstance(client.op, DimShuffle):
            if is_read_as_exponential(fgraph, client, steps - 1):
                return True
        elif client.op in _READERS and stable_form(client) is not None:
            return True
    return False


def _cancels_one(client: Apply, place: int) -> bool:
    """Return True if `client` is x - 1, 1 - x or x + -1 for its operand x at `place`: expm1 takes the place
    of these where x is an exponential.
    """
    if client.op not in (elemwise(add), elemwise(sub)):
        return False
    return scalar_value(client.inputs[1 - place]) == (1 if client.op == elemwise(sub) else -1)


_BETWEEN = (elemwise(add), elemwise(second))
_READERS = (elemwise(log), elemwise(log1p), elemwise(true_div))
