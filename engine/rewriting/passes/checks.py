"""Checks that are known to pass."""

from __future__ import annotations

from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.checks import CheckAndRaise, SpecifyShape
from engine.tensor.matching import scalar_value, tensor_type_of


@node_rewriter([CheckAndRaise])
def local_remove_useless_assert(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """check(x, True, c) -> check(x, c); check(x) -> x."""
    value, *conditions = node.inputs
    open_ones = [condition for condition in conditions if not scalar_value(condition)]
    if len(open_ones) == len(conditions) and conditions:
        return None
    return [node.op.make_node(value, *open_ones).outputs[0] if open_ones else value]


@node_rewriter([SpecifyShape])
def local_specify_shape_known(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """specify_shape(x, lengths) -> x, if the type of x has these lengths."""
    x, *lengths = node.inputs
    assert isinstance(node.op, SpecifyShape)
    static = tensor_type_of(x).shape
    for axis, length in zip(node.op.axes, lengths, strict=True):
        if not isinstance(length, Constant) or static[axis] != int(length.data):
            return None
    return [x]
