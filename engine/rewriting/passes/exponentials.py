"""Exponentials that a stable form of what is computed from them reads."""

from __future__ import annotations

from engine.gradient.stable_forms import stable_form
from engine.graph import Apply, FunctionGraph
from engine.scalar import add, log, log1p, second, sub, true_div
from engine.tensor.elemwise import DimShuffle, elemwise
from engine.tensor.matching import DEEPEST, scalar_value


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
