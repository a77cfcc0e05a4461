"""Lengths of axes, taken from the inputs of a computation: so a shape keeps no computation alive.

A user Op, or a draw of random numbers, gives lengths with `infer_shape`. It is asked about a node made of
types alone (see `without_context`), and the answer is translated to the node at hand.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any

from engine.graph import Apply, Constant, FunctionGraph, Variable, ancestors, rebuild
from engine.graph.represented import RepresentedType
from engine.graph.user_ops import without_context
from engine.inner.scan import Scan
from engine.inner.special import LogSoftmax, Softmax
from engine.rewriting.elementwise_pattern import apply_scalar, folded
from engine.rewriting.rewriters import node_rewriter
from engine.scalar import add, minimum, sub
from engine.tensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    Alloc,
    DimShuffle,
    Elemwise,
    IncSubtensor,
    MakeVector,
    Reshape,
    Shape_i,
    Subtensor,
    WrapIndex,
)
from engine.tensor.blockwise import Blockwise
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.elemwise import cast
from engine.tensor.gathering import SpreadIndex
from engine.tensor.index_entries import FULL, INTEGER, parts_of
from engine.tensor.joining import Join
from engine.tensor.linalg.callback_op import SMALLER, CallbackOp
from engine.tensor.linalg.equations import SolveBase
from engine.tensor.linalg.factorizations import Cholesky
from engine.tensor.matching import scalar_value, tensor_type_of
from engine.tensor.ordering import Argmax, Argmin
from engine.tensor.products import Dot
from engine.tensor.reduction import Reduction
from engine.tensor.shape import folded_shape_i
from engine.tensor.signature import parsed
from engine.tensor.signs import is_non_negative
from engine.tensor.type import tensor_type

Axis = tuple[Variable, int]
"""A tensor and the number of one of its axes."""


@node_rewriter([Shape_i])
def local_shape_i(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """shape_i(f(x)) -> shape_i(x), as far up as possible; a known length -> a constant."""
    op = node.op
    assert isinstance(op, Shape_i)
    x, axis = node.inputs[0], op.i
    while tensor_type_of(x).shape[axis] is None:
        source = _source(x, axis)
        if source is None:
            break
        if isinstance(source, Variable):
            return [source]
        x, axis = source
    if x is node.inputs[0]:
        return None if tensor_type_of(x).shape[axis] is None else [folded_shape_i(x, axis)]
    return [folded_shape_i(x, axis)]


def length_elsewhere(x: Variable, axis: int) -> Variable | None:
    """Return the length of `x` along `axis` from the inputs of its computation, or None."""
    start = x.owner
    while tensor_type_of(x).shape[axis] is None:
        source = _source(x, axis)
        if source is None:
            return None if x.owner is start else folded_shape_i(x, axis)
        if isinstance(source, Variable):
            return source
        x, axis = source
    return folded_shape_i(x, axis)


def equal_axes(x: Variable, axis: int) -> Iterator[Axis]:
    """Return axes that are as long as `axis` of `x` wherever `x` is computed, its own included."""
    waiting, seen = [(x, axis)], set()
    while waiting:
        place = waiting.pop()
        if place not in seen:
            seen.add(place)
            yield place
            waiting.extend(_equal_sources(*place))


def _equal_sources(x: Variable, axis: int) -> Sequence[Axis]:
    node = x.owner
    if node is not None and isinstance(node.op, Elemwise):
        return [(v, axis) for v in node.inputs if not tensor_type_of(v).broadcastable[axis]]
    source = _source(x, axis)
    if isinstance(source, Variable):
        asked = source.owner
        return [(asked.inputs[0], asked.op.i)] if asked is not None and isinstance(asked.op, Shape_i) else []
    return [] if source is None else [source]


def has_length(x: Variable, length: Variable) -> bool:
    """Return True if the first axis of `x` is known to have that `length`."""
    elsewhere = length_elsewhere(x, 0)
    found = folded_shape_i(x, 0) if elsewhere is None else elsewhere
    known = scalar_value(found)
    if found is length or (known is not None and known == scalar_value(length)):
        return True
    nodes = found.owner, length.owner
    return nodes[0] is not None and nodes[1] is not None and _is_like(nodes[0], nodes[1])


def _is_like(first: Apply, second: Apply) -> bool:
    return first.op == second.op and all(a is b for a, b in zip(first.inputs, second.inputs, strict=True))


def _source(x: Variable, axis: int) -> Axis | Variable | None:
    """Return the source of a length of `x`: another axis, a variable, or None for x itself."""
    node = x.owner
    if node is None:
        return None
    op, inputs = node.op, node.inputs
    if isinstance(op, Elemwise):
        return next(((v, axis) for v in inputs if not tensor_type_of(v).broadcastable[axis]), None)
    if isinstance(op, DimShuffle):
        place = op.new_order[axis]
        return None if isinstance(place, str) else (inputs[0], place)
    if isinstance(op, Reduction | Argmax | Argmin):
        kept = [a for a in range(tensor_type_of(inputs[0]).ndim) if a not in op.axis]
        return inputs[0], kept[axis]
    if isinstance(op, Dot):
        return (inputs[0], 0) if axis == 0 and tensor_type_of(inputs[0]).ndim == 2 else (inputs[1], 1)
    if isinstance(op, AdvancedSubtensor) and not op.is_replaced(inputs):
        return (inputs[1], 0) if axis == 0 else (inputs[0], axis)
    if isinstance(op, AdvancedIncSubtensor | IncSubtensor | WrapIndex | Softmax | LogSoftmax | Cholesky):
        return inputs[0], axis
    if isinstance(op, SolveBase):
        return inputs[1], axis
    if isinstance(op, CallbackOp):
        return _source_by_signature(node, x, axis)
    if isinstance(op, Blockwise):
        return _source_in_batch(node, x, axis)
    if isinstance(op, Alloc | SpreadIndex):
        return inputs[1 + axis]
    if isinstance(op, Join):
        return (
            (inputs[0], axis) if axis != op.axis else folded(add, [folded_shape_i(v, axis) for v in inputs])
        )
    if isinstance(op, Subtensor):
        return _source_of_part(node, axis)
    if isinstance(op, Scan):
        return _source_of_scan(x, axis)
    if isinstance(op, Reshape) and is_non_negative(inputs[1 + axis]):
        return inputs[1 + axis]
    return inferred_length(node, x, axis)


def _source_by_signature(node: Apply, x: Variable, axis: int) -> Axis | Variable | None:
    """Return the source of a length of a decomposition's output: an axis of an input, or the shorter one."""
    assert isinstance(node.op, CallbackOp)
    named, output = parsed(node.op.gufunc_signature), x.index
    assert output is not None
    name = named.outputs[output][axis]
    place = named.place_of(name)
    if place is not None:
        return node.inputs[place[0]], place[1]
    sides = [named.place_of(side) for side in "mn"]
    if name != SMALLER or None in sides:
        return None
    lengths = [folded_shape_i(node.inputs[side[0]], side[1]) for side in sides if side is not None]
    return apply_scalar(minimum, *lengths)


def _source_in_batch(node: Apply, x: Variable, axis: int) -> Axis | Variable | None:
    """Return the source of a length of a Blockwise's output: an axis of an input, or lengths of these.

    None if it depends on the elements, and may differ from place to place.
    """
    op, output = node.op, x.index
    assert isinstance(op, Blockwise)
    assert output is not None
    named, count = parsed(op.signature), op.batch_ndim(node)
    if axis < count:
        return next(((v, axis) for v in node.inputs if not tensor_type_of(v).broadcastable[axis]), None)
    name = named.outputs[output][axis - count]
    place = named.place_of(name)
    if place is not None:
        return node.inputs[place[0]], place[1] + count
    if name.isdigit():
        return number(int(name), "int64")
    core = op.core_node(node.inputs)
    source = _source(core.outputs[output], axis - count)
    if isinstance(source, tuple):
        source = folded_shape_i(*source)
    return None if source is None else _of_batch(source, core, node, count)


def _of_batch(length: Variable, core: Apply, node: Apply, count: int) -> Variable | None:
    """Return `length`, an expression of lengths of the inputs of `core`, for the batch of `node`; or None."""
    batches = dict(zip(core.inputs, node.inputs, strict=True))
    memo: dict[Variable, Variable] = {}
    for variable in ancestors([length]):
        asked = variable.owner
        if asked is not None and isinstance(asked.op, Shape_i) and asked.inputs[0] in batches:
            memo[variable] = folded_shape_i(batches[asked.inputs[0]], asked.op.i + count)
    (found,) = rebuild([length], memo)
    return None if any(variable in batches for variable in ancestors([found])) else found


def _source_of_part(node: Apply, axis: int) -> Axis | Variable | None:
    """Return the source of a length of a part: a whole axis (or reversed), or the steps of a Scan."""
    op, x = node.op, node.inputs[0]
    assert isinstance(op, Subtensor)
    entries = op.entries + (FULL,) * (tensor_type_of(x).ndim - len(op.entries))
    source = [a for a, entry in enumerate(entries) if entry != INTEGER][axis]
    numbers = list(parts_of(entries, node.inputs[1:]))[source]
    if entries[source] == FULL or (entries[source] == "::c" and _number(numbers[3]) in (1, -1)):
        return x, source
    scan = x.owner
    if scan is None or not isinstance(scan.op, Scan) or source != 0 or entries[0] not in ("a:", ":b", "a:b"):
        return None
    start, stop = (
        _number(n) if letter in entries[0] else 0 for letter, n in zip("ab", numbers[1:3], strict=True)
    )
    return None if start is None or stop is None else _source_of_rows(x, scan, start, stop)


def _source_of_rows(x: Variable, scan: Apply, start: int, stop: int) -> Variable | None:
    """Return the number of rows of a state from `start` to before `stop`, which counts from the end."""
    output = x.index
    assert isinstance(scan.op, Scan)
    assert output is not None
    info = scan.op.info
    if output >= info.n_states or info.keeps[output] is not None or start < 0 or stop > 0:
        return None
    more = info.n_initial(output) - start + stop
    if more < 0:
        return None
    if info.is_while:
        return apply_scalar(sub, folded_shape_i(x, 0), start - stop)
    return apply_scalar(add, scan.inputs[0], more) if more else scan.inputs[0]


def _number(variable: Variable | None) -> Any:
    return None if variable is None else scalar_value(variable)


def _source_of_scan(x: Variable, axis: int) -> Axis | Variable | None:
    """Return the source of a length of a Scan's output: the number of steps, or an input of its rows."""
    node, output = x.owner, x.index
    assert node is not None
    assert output is not None
    assert isinstance(node.op, Scan)
    info = node.op.info
    outer = info.outer_inputs(node.inputs)
    if output < info.n_states:
        if axis > 0:
            return outer.initials[output], axis
        return None if info.is_while else apply_scalar(add, outer.n_steps, info.n_initial(output))
    if axis == 0:
        return None if info.is_while else outer.n_steps
    return _source_of_row(node, node.op.inner_outputs[output], axis - 1)


def _source_of_row(node: Apply, row: Variable, axis: int) -> Axis | Variable | None:
    """Return the source, outside, of a length of a row that a step of the Scan of `node` computes."""
    assert isinstance(node.op, Scan)
    while row.owner is not None:
        known = tensor_type_of(row).shape[axis]
        if known is not None:
            return number(known, "int64")
        source = _source(row, axis)
        if not isinstance(source, tuple):
            return None
        row, axis = source
    info = node.op.info
    outer = info.outer_inputs(node.inputs)
    inner = info.inner_inputs(node.op.inner_inputs)
    sources: dict[Variable, Axis] = {
        i: (o, axis + 1) for o, i in zip(outer.sequences, inner.rows, strict=True)
    }
    for initial, taps in zip(outer.initials, inner.taps, strict=True):
        sources |= dict.fromkeys(taps, (initial, axis + 1))
    sources |= {i: (o, axis) for o, i in zip(outer.non_sequences, inner.non_sequences, strict=True)}
    return sources.get(row)


@node_rewriter([Subtensor])
def local_subtensor_make_vector(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """MakeVector(a, b, ...)[1] -> b; MakeVector(a, b)[...] -> MakeVector(a, b)."""
    op, vector = node.op, node.inputs[0].owner
    assert isinstance(op, Subtensor)
    if vector is None or not isinstance(vector.op, MakeVector):
        return None
    if not op.entries:
        return [node.inputs[0]]
    if op.entries != (INTEGER,):
        return None
    position = scalar_value(node.inputs[1])
    if position is None or not -len(vector.inputs) <= position < len(vector.inputs):
        return None
    return [vector.inputs[position]]


@node_rewriter([DimShuffle])
def local_useless_dimshuffle_makevector(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dimshuffle(MakeVector(a)) without axes -> a."""
    assert isinstance(node.op, DimShuffle)
    vector = node.inputs[0].owner
    if vector is None or not isinstance(vector.op, MakeVector) or node.op.new_order:
        return None
    return [vector.inputs[0]]


def inferred_length(node: Apply, x: Variable, axis: int) -> Variable | None:
    """Return the length of `x` that its Op's `infer_shape` gives; None if it gives none, or raises.

    Refuse (ValueError) a wrong number of shapes or lengths.
    """
    infer: Any = getattr(node.op, "infer_shape", None)
    if infer is None or x.index is None:
        return None
    asked = without_context(node)
    shapes = [_lengths(v) for v in asked.inputs]
    try:
        found = infer(*([None] if _takes_graph(infer) else []), asked, list(shapes))
    except NotImplementedError:
        return None
    except Exception as error:
        _warn(node, error)
        return None
    length = _checked(node, x, found, axis)
    return None if length is None else _said_of(node, length, asked, shapes)


def _takes_graph(infer: Any) -> bool:
    """Return True if a method `infer_shape` takes a graph first, as in releases of PyTensor before 3.3."""
    return len(signature(infer).parameters) > 2


def _lengths(variable: Variable) -> tuple[Any, ...]:
    """Return the lengths of `variable`: constants if its type knows them, else fresh variables."""
    if isinstance(variable.type, RepresentedType):
        return ()
    unknown = tensor_type("int64", ())
    return tuple(
        [
            unknown.make_variable() if length is None else number(length, "int64")
            for length in tensor_type_of(variable).shape
        ]
    )


def _warn(node: Apply, error: Exception) -> None:
    warnings.warn(
        f"Asking {node.op} for shapes: its infer_shape raised {type(error).__name__}: {error}; lengths "
        "are taken from its results. It sees types only: no input values, and nothing that computes inputs",
        RuntimeWarning,
        stacklevel=2,
    )


def _checked(node: Apply, x: Variable, found: Any, axis: int) -> Any:
    """Return the length of `x` along `axis` among the answers of `infer_shape`."""
    if len(found) != len(node.outputs):
        raise ValueError(
            f"Asking {node.op} for shapes: infer_shape must give {len(node.outputs)}, it gave {len(found)}"
        )
    shape = found[x.index]
    if shape is None:
        return None
    if len(shape) != tensor_type_of(x).ndim:
        raise ValueError(
            f"Asking {node.op} for the shape of output {x.index}: infer_shape must give "
            f"{tensor_type_of(x).ndim} lengths, it gave {len(shape)}"
        )
    return shape[axis]


def _said_of(node: Apply, length: Any, asked: Apply, shapes: Sequence[tuple[Any, ...]]) -> Variable:
    """Return `length`, an expression of the node `asked`, as an expression of `node`."""
    memo: dict[Variable, Variable] = dict(zip(asked.inputs, node.inputs, strict=True))
    memo.update(zip(asked.outputs, node.outputs, strict=True))
    for variable, lengths in zip(node.inputs, shapes, strict=True):
        for axis, stand_in in enumerate(lengths):
            if not isinstance(stand_in, Constant):
                memo[stand_in] = folded_shape_i(variable, axis)
    return rebuild([cast(as_tensor_variable(length), "int64")], memo)[0]
