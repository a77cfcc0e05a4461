"""Values that are repeated for an elementwise operation alone, which repeats them by itself; or whose result
is repeated in their place.

The lengths that the repeated value would have checked are checked still: they are those of another operand,
or constants, which that operand is then said to have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.rewriting.rewriters import GraphRewriter, RewriteReport, node_rewriter
from engine.tensor import Alloc, DimShuffle, Elemwise, Reshape, Shape_i, Subtensor, dimshuffle
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import number
from engine.tensor.creation import alloc
from engine.tensor.elemwise import elemwise
from engine.tensor.index_entries import INTEGER
from engine.tensor.matching import DEEPEST, scalar_value, tensor_type_of
from engine.tensor.shape import folded_shape_i
from engine.tensor.type import tensor_type
from engine.tensor.variable import TensorConstant

_SECOND = elemwise(scalar.second)


@node_rewriter([Elemwise])
def local_elemwise_alloc(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(alloc(a, n, m), x) -> f(a, x), if x has as many elements along each axis that a is repeated over.

    A constant of equal elements is such a value too: x * ones(3) is x, of 3 elements.
    """
    assert isinstance(node.op, Elemwise)
    if len(node.inputs) < 2 or len(node.outputs) != 1 or node.op.scalar_op == scalar.second:
        return None
    for place, variable in enumerate(node.inputs):
        found = _repeated(variable)
        operands = None if found is None else _without(node.inputs, place, *found)
        if operands is not None:
            result = node.op.make_node(*operands).outputs[0]
            if node.outputs[0].type.is_super(result.type):
                return [result]
    return None


@node_rewriter([Elemwise])
def local_alloc_sink(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(alloc(a, n, m), x) -> alloc(f(a, x), n, m): f is computed before its result is repeated.

    The alloc compares the lengths that f would have compared.
    """
    assert isinstance(node.op, Elemwise)
    if len(node.outputs) != 1 or node.op.scalar_op == scalar.second:
        return None
    for place, variable in enumerate(node.inputs):
        found = _repeated(variable)
        if found is None:
            continue
        value, lengths = found
        operands = [value if at == place else v for at, v in enumerate(node.inputs)]
        if are_numbers := all(all(tensor_type_of(v).broadcastable) for v in operands):
            operands = [dimshuffle(v, ()) for v in operands]  # the form in which other rewrites look for them
        result = node.op.make_node(*operands).outputs[0]
        own = [None if _is_one(variable, axis) else length for axis, length in enumerate(lengths)]
        rest = [1 if are_numbers else folded_shape_i(result, axis) for axis in range(len(lengths))]
        whole = alloc(result, [n if length is None else length for n, length in zip(rest, own, strict=True)])
        if node.outputs[0].type.is_super(whole.type):
            return [whole]
    return None


def _repeated(variable: Variable) -> tuple[Any, list[Any]] | None:
    """Return the value that is repeated in `variable`, with its axes in place, and all lengths; or None."""
    if isinstance(variable, Constant):
        return repeated_in(variable)
    node = variable.owner
    order: Sequence[Any] = range(tensor_type_of(variable).ndim)
    if node is not None and isinstance(node.op, DimShuffle):
        order, node = node.op.new_order, node.inputs[0].owner
    if node is None or not isinstance(node.op, Alloc):
        return None
    value, *lengths = node.inputs
    if any(scalar_value(length) != 1 for place, length in enumerate(lengths) if place not in order):
        return None
    return dimshuffle(value, order), [lengths[place] if isinstance(place, int) else None for place in order]


def repeated_in(constant: Constant) -> tuple[Any, list[Any]] | None:
    """Return the number that all elements of a constant are, bit for bit, and its lengths; None if it is
    data, or differs, or is of one element.
    """
    array = constant.data
    if not isinstance(constant, TensorConstant) or constant.is_data or array.size < 2:
        return None
    one = array.ravel()[:1]
    if array.tobytes() != one.tobytes() * array.size:
        return None
    shape = (1,) * array.ndim
    value = TensorConstant(tensor_type(array.dtype.name, shape), one.reshape(shape))
    return value, [number(length, "int64") for length in array.shape]


def _without(inputs: Sequence[Variable], place: int, value: Any, lengths: Sequence[Any]) -> list[Any] | None:
    """Return `inputs` with `value` for the one at `place`; None if a length would be lost, or not checked."""
    found: list[Any] = list(inputs)
    found[place] = value
    due: dict[int, int] = {}
    for axis, length in enumerate(lengths):
        if length is None or scalar_value(length) == 1:
            continue
        holders = [at for at, v in enumerate(found) if not _is_one(v, axis)]
        if any(has_length(found[at], axis, length) for at in holders):
            continue
        if scalar_value(length) is None or not holders:
            return None
        due[axis] = scalar_value(length)
    return _checked(found, due, len(lengths))


def _checked(operands: list[Any], due: dict[int, int], ndim: int) -> list[Any]:
    """Return `operands`, of which one is said to have the lengths `due` along its axes, or several are."""
    is_one_enough = any(not any(_is_one(v, axis) for axis in due) for v in operands)
    for axes in [list(due)] if is_one_enough else [[axis] for axis in due]:
        at = next(at for at, v in enumerate(operands) if not any(_is_one(v, axis) for axis in axes))
        operands[at] = specify_shape(operands[at], [due[n] if n in axes else None for n in range(ndim)])
    return operands


def _is_one(variable: Variable, axis: int) -> bool:
    return tensor_type_of(variable).broadcastable[axis]


def has_length(variable: Variable, axis: int, length: Variable, steps: int = DEEPEST) -> bool:
    """Return True if `variable` is known to have `length` along `axis`."""
    known = tensor_type_of(variable).shape[axis]
    if known is not None:
        return bool(scalar_value(length) == known)
    asked, node = length.owner, variable.owner
    if asked is not None and asked.op == Shape_i(axis) and asked.inputs[0] is variable:
        return True
    if node is None or not steps:
        return False
    if isinstance(node.op, DimShuffle):
        place = node.op.new_order[axis]
        return isinstance(place, int) and has_length(node.inputs[0], place, length, steps - 1)
    if not isinstance(node.op, Elemwise):
        return False
    return any(not _is_one(v, axis) and has_length(v, axis, length, steps - 1) for v in node.inputs)


class FillOptimizer(GraphRewriter):
    """second(x, b) -> alloc(b, x.shape), of an input x, or of slices of one, with the shape of the result.

    It runs after fusion: before, loops around may make such values without memory. A computed x may not be
    computed at all, when it is read in one loop with the result: it stays. So does a reshaped tensor, which
    may be refused, unless something else reads it, too, and its lengths are known.
    """

    name = "local_second_to_alloc"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        if not any(node.op == _SECOND for node in fgraph.apply_nodes):
            return
        for node in fgraph.toposort():
            filled = _filled(fgraph, node) if node.op == _SECOND else None
            if filled is not None and node.outputs[0].type.is_super(filled.type):
                fgraph.replace_all([(node.outputs[0], filled)], self.name)
                report.count(self.name)


def _filled(fgraph: FunctionGraph, node: Apply) -> Any:
    template, value = node.inputs
    known = tensor_type_of(template)
    if known.broadcastable != tensor_type_of(node.outputs[0]).broadcastable:
        return None
    if _is_of_input(template):
        return alloc(value, [folded_shape_i(template, axis) for axis in range(known.ndim)])
    if None not in known.shape and _is_reshaped_anyway(fgraph, template):
        return alloc(value, known.shape)
    return None


def _is_reshaped_anyway(fgraph: FunctionGraph, template: Variable) -> bool:
    """Return True for a reshaped tensor whose elements something reads."""
    if template.owner is None or not isinstance(template.owner.op, Reshape):
        return False
    return any(
        not (client.op == _SECOND or isinstance(client.op, Shape_i)) for client, _ in fgraph.clients[template]
    )


def _is_of_input(template: Variable) -> bool:
    """Return True for an input and for slices of one, which are never refused as an integer may be."""
    node = template.owner
    while node is not None and isinstance(node.op, Subtensor) and INTEGER not in node.op.entries:
        node = node.inputs[0].owner
    return node is None
