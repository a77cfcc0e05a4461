"""Joined tensors: those of no elements, vectors of numbers side by side, and reductions over joined axes.

sum(stack([a, b])) becomes a + b: nothing is copied, and the sum is part of other elementwise operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby
from typing import Any

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.checks import specify_shape
from engine.tensor.elemwise import Elemwise, cast, dimshuffle, elemwise
from engine.tensor.joining import Join
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.math import add, maximum, minimum, mul
from engine.tensor.reduction import Max, Min, Prod, Reduction, Sum
from engine.tensor.shape import MakeVector

MOST_TERMS = 32
"""Reductions of more tensors stay: an elementwise operation has an operand for each."""

_FOLDS: dict[type, Callable[[Any, Any], Any]] = {Sum: add, Prod: mul, Max: maximum, Min: minimum}
_READERS = (elemwise(scalar.log), elemwise(scalar.abs))
"""A product stays for these: its logarithm has a form that does not overflow, found by the Op."""


@node_rewriter([Join])
def local_join_empty(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """join(a, empty, b) -> join(a, b), where a type says that there is nothing to join.

    The lengths along the other axes that it would have checked are those of its type, and are checked still.
    """
    op, output = node.op, node.outputs[0]
    assert isinstance(op, Join)
    kept = [v for v in node.inputs if not _adds_nothing(v, op.axis)]
    if not kept or len(kept) == len(node.inputs):
        return None
    result: Any = kept[0] if len(kept) == 1 else op.make_node(*kept).outputs[0]
    if not output.type.is_super(result.type):
        result = cast(specify_shape(result, tensor_type_of(output).shape), dtype_of(output))
    return typed(node, result)


def _adds_nothing(variable: Variable, axis: int) -> bool:
    """Return True if `variable` has no elements along `axis`, and its type tells its other lengths."""
    shape = tensor_type_of(variable).shape
    return shape[axis] == 0 and None not in shape


@node_rewriter([Join])
def local_join_make_vector(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """join(MakeVector(a), MakeVector(b, c), v) -> join(MakeVector(a, b, c), v)."""
    joined: list[Variable] = []
    for is_made, run in groupby(node.inputs, _is_made_vector):
        vectors = list(run)
        dtypes = {dtype_of(vector) for vector in vectors}
        if not is_made or len(vectors) == 1 or len(dtypes) != 1:
            joined += vectors
        else:
            elements = [element for vector in vectors for element in _elements(vector)]
            joined.append(MakeVector(dtype_of(vectors[0])).make_node(*elements).outputs[0])
    if len(joined) == len(node.inputs):
        return None
    result = joined[0] if len(joined) == 1 else node.op.make_node(*joined).outputs[0]
    return typed(node, result)


def _is_made_vector(variable: Variable) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, MakeVector)


def _elements(vector: Variable) -> Sequence[Variable]:
    assert vector.owner is not None
    return vector.owner.inputs


@node_rewriter([Sum, Prod, Max, Min])
def local_reduce_join(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """sum(join(a, b)) over the joined axis, along which a and b have length 1 -> a + b without that axis.

    So for products, maxima, minima, and vectors of numbers (`MakeVector`).
    """
    op, (x,) = node.op, node.inputs
    assert isinstance(op, Reduction)
    if isinstance(op, Prod) and any(client.op in _READERS for client, _ in fgraph.clients[node.outputs[0]]):
        return None
    terms = _terms(fgraph, op, x)
    if not 0 < len(terms) <= MOST_TERMS or getattr(op, "acc_dtype", dtype_of(x)) != dtype_of(x):
        return None
    if len({(dtype_of(term), tensor_type_of(term).broadcastable) for term in terms}) != 1:
        return None
    result = reduce(_FOLDS[type(op)], terms)
    return typed(node, result)


def _terms(fgraph: FunctionGraph, op: Any, x: Variable) -> list[Any]:
    """Return the tensors that `op` combines, without the axis along which they are joined in `x`."""
    node = x.owner
    if node is None or len(op.axis) != 1:
        return []
    if isinstance(node.op, MakeVector):
        return list(node.inputs)
    if not isinstance(node.op, Join) or node.op.axis != op.axis[0]:
        return []
    axis = node.op.axis
    if not all(tensor_type_of(v).broadcastable[axis] for v in node.inputs):
        return []
    kept = [place for place in range(tensor_type_of(x).ndim) if place != axis]
    return [_turned(fgraph, v, kept) for v in node.inputs]


def _turned(fgraph: FunctionGraph, v: Variable, order: Sequence[int]) -> Variable:
    """Return `v` with these axes only: computed without the others, if nothing else reads `v`."""
    node = v.owner
    if node is None or not isinstance(node.op, Elemwise) or len(fgraph.clients[v]) > 1:
        return dimshuffle(v, order)
    return node.op.make_node(*[dimshuffle(operand, order) for operand in node.inputs]).outputs[
        node.outputs.index(v)
    ]
