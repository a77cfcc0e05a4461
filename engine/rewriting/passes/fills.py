"""`second(a, b)`, which is b in the shape of a: removed if the shape has another source, else moved out.

Like PyTensor's rewrites of `fill`, these trust a shape that only `a` would have checked. They keep reads of
elements of `a`, or of its ancestors, that may not exist: `zeros_like(v[7])` still refuses a shorter v.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.rewriting.walking import in2out
from engine.tensor.checks import CheckAndRaise
from engine.tensor.elemwise import DimShuffle, Elemwise, elemwise
from engine.tensor.index_entries import parts_of
from engine.tensor.matching import operands_of, scalar_value, tensor_type_of
from engine.tensor.slicing import Subtensor

_MOST_OPERANDS = 32
_SECOND = elemwise(scalar.second)


def broadcasts_alike(first: Variable, second: Variable) -> bool:
    """Return True if two tensors of equal rank have known lengths of 1 along the same axes."""
    return tensor_type_of(first).broadcastable == tensor_type_of(second).broadcastable


def elements_asked_for(fgraph: FunctionGraph, template: Variable) -> list[Variable]:
    """Return elements read by a scalar `template` that may not exist and that nothing else checks."""
    found, waiting, chain = [], [template], set[Apply]()
    while waiting and len(chain) < _MOST_OPERANDS:
        variable = waiting.pop()
        node = variable.owner
        if node is None or node in chain or not all(tensor_type_of(variable).broadcastable):
            continue
        if _is_needed_elsewhere(fgraph, variable, chain):
            continue
        chain.add(node)
        if isinstance(node.op, Elemwise):
            waiting += node.inputs
        elif _is_such_element(variable):
            found.append(variable)
    return found


def asks_for_element(node: Apply) -> bool:
    """Return True if `node` is a second(a, b) with an element as a that may not exist."""
    return node.op == _SECOND and _is_such_element(node.inputs[0])


def _is_such_element(variable: Variable) -> bool:
    node = variable.owner
    if node is not None and isinstance(node.op, DimShuffle):
        return _may_be_missing(node.inputs[0])
    return _may_be_missing(variable)


def _is_needed_elsewhere(fgraph: FunctionGraph, variable: Variable, chain: set[Apply]) -> bool:
    """Return True if a node outside `chain` needs the value of `variable`, not only its shape."""
    clients = [client for client in fgraph.clients.get(variable, ()) if client[0] not in chain]
    return any(node.op != _SECOND or position != 0 for node, position in clients)


def _may_be_missing(variable: Variable) -> bool:
    node = variable.owner
    if node is None or not isinstance(node.op, Subtensor):
        return False
    lengths = tensor_type_of(node.inputs[0]).shape
    for axis, (index, *_) in enumerate(parts_of(node.op.entries, node.inputs[1:])):
        if index is not None and not _is_there(scalar_value(index), lengths[axis]):
            return True
    return False


def _is_there(index: float | None, length: int | None) -> bool:
    return index is not None and length is not None and -length <= index < length


@node_rewriter([_SECOND])
def local_useless_fill(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """second(a, b) -> b, if b has that shape already."""
    template, value = node.inputs
    output = node.outputs[0]
    if not broadcasts_alike(value, output) or elements_asked_for(fgraph, template):
        return None
    return typed(node, value)


@node_rewriter([_SECOND])
def local_fill_template(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """second(f(a, ...), b) -> second(a, b), if a has the shape of f(a, ...): then f need not be computed.

    A check of conditions is such a function, too: it is made where the value is used, not where its shape is.
    """
    template, value = node.inputs
    if template.owner is None or not isinstance(template.owner.op, Elemwise | CheckAndRaise):
        return None
    is_check = isinstance(template.owner.op, CheckAndRaise)
    sources = template.owner.inputs[:1] if is_check else template.owner.inputs
    alike = [v for v in sources if broadcasts_alike(v, template)]
    elements = elements_asked_for(fgraph, template)
    if not alike and not elements:
        return None
    # Candidates without a check have the same shape: one is enough.
    result = value
    for candidate in elements or alike[:1]:
        result = apply_scalar(scalar.second, candidate, result)
    return typed(node, result) if broadcasts_alike(result, node.outputs[0]) else None


@node_rewriter([Elemwise])
def local_fill_sink(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(second(a, b), c) -> f(b, c), if c has the shape of the result; else second(a, f(b, c)).

    If a reads an element that may not exist, the second form is used; and if f is itself `second`, nothing
    is moved.
    """
    templates = []
    values: list[Variable] = []
    is_fill = node.op == _SECOND
    for position, variable in enumerate(node.inputs):
        operands = operands_of(variable, scalar.second)
        is_template = is_fill and position == 0
        if operands is None or is_template:
            values.append(variable)
        else:
            templates.append(operands[0])
            values.append(operands[1])
    if not templates:
        return None
    made = node.op.make_node(*values).outputs
    if is_fill and not broadcasts_alike(made[0], node.outputs[0]):
        return None
    asked = [template for template in templates if elements_asked_for(fgraph, template)]
    if is_fill and asked:
        return None
    results = [_in_shape(*pair, templates, asked) for pair in zip(made, node.outputs, strict=True)]
    is_same = all(old.type.is_super(new.type) for old, new in zip(node.outputs, results, strict=True))
    return results if is_same else None


def _in_shape(
    result: Variable, output: Variable, templates: Sequence[Variable], asked: Sequence[Variable]
) -> Variable:
    """Return `result` in the shape of `output`, by those `templates` that are needed or `asked` for."""
    for template in templates:
        if template in asked or not broadcasts_alike(result, output):
            result = apply_scalar(scalar.second, template, result)
    return result


topological_second_sink = in2out(local_useless_fill, local_fill_sink, name="topological_second_sink")
"""Moves each second(a, b) to where its shape is needed, on one walk through a graph."""
