"""`second(a, b)`, which is b in the shape of a: taken out where the shape comes from elsewhere, else moved outward.

As PyTensor's rewrites of `fill` do, these trust that a shape which only `a` would have checked is right.
"""

from __future__ import annotations

from engine import scalar
from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Variable
from engine.rewriting.pattern import apply_scalar
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.elemwise import Elemwise, elemwise
from engine.tensor.matching import operands_of, tensor_type_of


def broadcasts_alike(first: Variable, second: Variable) -> bool:
    """Whether two tensors of equal rank have known lengths of 1 along the same axes."""
    return tensor_type_of(first).broadcastable == tensor_type_of(second).broadcastable


@node_rewriter([elemwise(scalar.second)])
def local_useless_fill(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """second(a, b) -> b, where b has that shape already."""
    value = node.inputs[1]
    output = node.outputs[0]
    return [value] if broadcasts_alike(value, output) and output.type.is_super(value.type) else None


@node_rewriter([elemwise(scalar.second)])
def local_fill_template(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """second(f(a, ...), b) -> second(a, b), where a has the shape of f(a, ...): f need not be computed."""
    template, value = node.inputs
    if template.owner is None or not isinstance(template.owner.op, Elemwise):
        return None
    for candidate in template.owner.inputs:
        if broadcasts_alike(candidate, template):
            result = apply_scalar(scalar.second, candidate, value)
            return [result] if node.outputs[0].type.is_super(result.type) else None
    return None


@node_rewriter([Elemwise])
def local_fill_sink(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(second(a, b), c) -> f(b, c), where c has the shape of the result, else second(a, f(b, c))."""
    templates = []
    values: list[Variable] = []
    is_fill = node.op == elemwise(scalar.second)
    for position, variable in enumerate(node.inputs):
        operands = operands_of(variable, scalar.second)
        is_template = is_fill and position == 0
        if operands is None or is_template:
            values.append(variable)
        else:
            templates.append(operands[0])
            values.append(operands[1])
    if not templates or len(node.outputs) != 1:
        return None
    output = node.outputs[0]
    result = node.op.make_node(*values).outputs[0]
    if is_fill and not broadcasts_alike(result, output):
        return None
    for template in templates:
        if not broadcasts_alike(result, output):
            result = apply_scalar(scalar.second, template, result)
    return [result] if output.type.is_super(result.type) else None
