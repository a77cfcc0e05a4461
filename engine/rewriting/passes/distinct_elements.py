"""Distinct elements of what is repeated: those of what it repeats.

The repeated array must be known to have elements, and to make no check that would be lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.inner.rearranging import Repeat
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import Alloc, DimShuffle, dimshuffle
from engine.tensor.distinct import Unique
from engine.tensor.matching import operands_of, tensor_type_of
from engine.tensor.type import is_data


@node_rewriter([Unique])
def local_Unique_scalar(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """unique(a) -> a as a vector, for a number a."""
    (x,) = node.inputs
    if not _has_elements_only(node.op) or tensor_type_of(x).ndim:
        return None
    return [dimshuffle(x, ["x"])]


@node_rewriter([Unique])
def local_Unique_lift(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """unique(alloc(x, n)) -> unique(x); so of repeat(x, n) and second(y, x), of known lengths above 0."""
    (x,) = node.inputs
    value = _repeated(x)
    if value is None or not _has_elements_only(node.op):
        return None
    while value.owner is not None and isinstance(value.owner.op, DimShuffle):
        value = value.owner.inputs[0]
    return list(node.op.make_node(value).outputs)


def _has_elements_only(op: object) -> bool:
    assert isinstance(op, Unique)
    return op.axis is None and not (op.return_index or op.return_inverse or op.return_counts)


def _repeated(x: Variable) -> Variable | None:
    """Return what is repeated in `x`, without further checks; otherwise None."""
    node, shape = x.owner, tensor_type_of(x).shape
    operands = operands_of(x, scalar.second)
    if operands is not None and all(tensor_type_of(v).shape == shape for v in (operands[0], x)):
        return operands[1] if all(shape) and _fits(operands[1], shape) else None
    if node is not None and isinstance(node.op, Alloc):
        return node.inputs[0] if all(shape) and _fits(node.inputs[0], shape) else None
    if node is not None and isinstance(node.op, Repeat):
        return _repeated_each(node)
    return None


def _fits(value: Variable, shape: Sequence[int | None]) -> bool:
    """Return True if all lengths of `value` are known to fit."""
    own = tensor_type_of(value).shape
    return all(a == 1 or a == b for a, b in zip(own, shape[len(shape) - len(own) :], strict=True))


def _repeated_each(node: Apply) -> Variable | None:
    """Return the tensor of which each row is repeated a constant number of times, at least once."""
    x, times = node.inputs
    assert isinstance(node.op, Repeat)
    if not isinstance(times, Constant) or is_data(times) or not np.all(times.data > 0):
        return None
    return x if tensor_type_of(times).shape == (tensor_type_of(x).shape[node.op.axis],) else None


DISTINCT_ELEMENTS = (local_Unique_scalar, local_Unique_lift)
