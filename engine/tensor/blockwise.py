"""`Blockwise`: an Op on the last axes of its inputs, applied at each place of a batch, the axes before them;
and the functions that put batches into a graph.

An Op that a batch needs no loop for says so in its method `vectorized`. The names and semantics are
PyTensor's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.reference import run_node
from engine.graph.traversal import toposort, truncated_graph_inputs
from engine.graph.user_ops import without_context
from engine.graph.variables import Variable
from engine.late_names import names_elsewhere
from engine.tensor.broadcasting import broadcast_lengths, unbroadcast_axes
from engine.tensor.conversion import as_tensor_variable, number, pad
from engine.tensor.creation import alloc
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import shape_i
from engine.tensor.signature import lengths_by_name, parsed
from engine.tensor.type import TensorType, tensor_type


class Blockwise(Op):
    """Applies `core_op` at each place of a batch: the axes in front of those that `signature` names.

    The batch axes of the inputs broadcast as those of an elementwise operation: only an axis that is known to
    have length 1 does. Without `signature`, it is the `gufunc_signature` of `core_op`. Raises ValueError if
    there is none, for too few axes, and for lengths that do not fit.
    """

    __props__ = ("core_op", "signature")

    def __init__(self, core_op: Op, signature: str | None = None) -> None:
        if isinstance(core_op, Blockwise):
            raise TypeError(f"Making a Blockwise of {core_op}: it is one already")
        found = getattr(core_op, "gufunc_signature", None) if signature is None else signature
        if found is None:
            raise ValueError(f"Making a Blockwise: Signature not provided nor found in core_op {core_op}")
        parsed(found)
        self.core_op, self.signature = core_op, found

    def make_node(self, *inputs: Any) -> Apply:
        tensors = [as_tensor_variable(value) for value in inputs]
        cores = self._core_inputs(tensors)
        core = self.core_op.make_node(*cores)
        # Whatever the Op does to its inputs first, a cast, is done to the batch.
        tensors = graph_of_batches(core.inputs, dict(zip(cores, tensors, strict=True)))
        self._check_outputs(core)
        counts = [v.type.ndim - c.type.ndim for v, c in zip(tensors, core.inputs, strict=True)]
        tensors = [pad(v, v.type.ndim + max(counts) - n) for v, n in zip(tensors, counts, strict=True)]
        batch = self._static_batch(tensors, max(counts))
        types = [tensor_type(o.type.dtype, (*batch, *o.type.shape)) for o in core.outputs]
        return Apply(self, tensors, [type.make_variable() for type in types])

    def _core_inputs(self, tensors: Sequence[Any]) -> list[Any]:
        """Return new variables for the parts of `tensors` at one place of the batch."""
        due = parsed(self.signature).inputs
        if len(tensors) != len(due):
            raise ValueError(f"Applying {self}: it takes {len(due)} inputs, {len(tensors)} were given")
        cores = []
        for position, (tensor, axes) in enumerate(zip(tensors, due, strict=True)):
            count = tensor.type.ndim - len(axes)
            if count < 0:
                raise ValueError(
                    f"Applying {self}: input {position} of type {tensor.type} has insufficient core "
                    f"dimensions for signature {self.signature}"
                )
            cores.append(tensor_type(tensor.type.dtype, tensor.type.shape[count:]).make_variable())
        return cores

    def _check_outputs(self, core: Apply) -> None:
        due = [len(axes) for axes in parsed(self.signature).outputs]
        found = [output.type.ndim for output in core.outputs]
        if found != due:
            raise ValueError(
                f"Applying {self}: outputs of {found} dimensions, {due} are due by signature {self.signature}"
            )

    def _static_batch(self, tensors: Sequence[Any], count: int) -> tuple[int | None, ...]:
        batch: list[int | None] = []
        for axis, lengths in enumerate(zip(*[v.type.shape[:count] for v in tensors], strict=True)):
            known = {length for length in lengths if length not in (1, None)}
            if len(known) > 1:
                raise ValueError(
                    f"Applying {self}: Incompatible Blockwise batch input shapes "
                    f"{[v.type.shape for v in tensors]} along axis {axis}"
                )
            batch.append(known.pop() if known else None if None in lengths else 1)
        return tuple(batch)

    def batch_ndim(self, node: Apply) -> int:
        """Return the number of batch axes of `node`."""
        return node.outputs[0].type.ndim - len(parsed(self.signature).outputs[0])

    def core_node(self, inputs: Sequence[Variable]) -> Apply:
        """Return the core Op applied to new variables, of the types of `inputs` at one place of the batch."""
        return without_context(self.core_op.make_node(*self._core_inputs(inputs)))

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        count, core = self.batch_ndim(node), self.core_node(node.inputs)
        types = [tensor_type("bool", v.type.shape[:count]) for v in node.inputs]
        batch = broadcast_lengths(str(self), types, [array.shape[:count] for array in inputs])
        arrays = [np.broadcast_to(array, (*batch, *array.shape[count:])) for array in inputs]
        if hasattr(core.op, "computed_at_each"):
            found = core.op.computed_at_each(core, arrays, batch)
            for cell, result in zip(output_storage, found, strict=True):
                cell[0] = result
            return
        results = [run_node(core, [np.array(a[place]) for a in arrays]) for place in np.ndindex(*batch)]
        shapes = [r.shape for r in results[0]] if results else self._empty_shapes(core, arrays, count)
        for position, (cell, shape) in enumerate(zip(output_storage, shapes, strict=True)):
            rows = [result[position] for result in results]
            dtype = core.outputs[position].type.dtype
            cell[0] = (np.stack(rows) if rows else np.empty(0, dtype)).reshape((*batch, *shape))

    def _empty_shapes(self, core: Apply, arrays: Sequence[Any], count: int) -> list[tuple[int, ...]]:
        """Return the shapes of the core Op's outputs if the batch has no places; 0 where only it tells."""
        signature = parsed(self.signature)
        known = lengths_by_name(signature.inputs, [array.shape[count:] for array in arrays])
        pairs = zip(signature.outputs, core.outputs, strict=True)
        return [
            tuple([known.get(n, 0) if s is None else s for n, s in zip(axes, o.type.shape, strict=True)])
            for axes, o in pairs
        ]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return self.pullback_by(self.core_op.pullback, inputs, outputs, cotangents)

    def pullback_by(
        self,
        pullback: Callable[..., Sequence[Any]],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        cotangents: Sequence[Any],
    ) -> list[Any]:
        """Return the gradients for the whole batch that `pullback` gives for one place."""
        core = self.core_node(inputs)
        given = [
            None if cotangent is None else tensor_type(cotangent.type.dtype, o.type.shape).make_variable()
            for cotangent, o in zip(cotangents, core.outputs, strict=True)
        ]
        found = pullback(core.inputs, core.outputs, given)
        replace = dict(zip((*core.inputs, *core.outputs), (*inputs, *outputs), strict=True))
        replace |= {c: g for c, g in zip(given, cotangents, strict=True) if c is not None}
        present = iter(graph_of_batches([g for g in found if g is not None], replace))
        batched_ones = [None if g is None else next(present) for g in found]
        return [None if g is None else _fitted(g, v) for g, v in zip(batched_ones, inputs, strict=True)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return self.core_op.connection_pattern(self.core_node(node.inputs))

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.make_node(*inputs).outputs

    def __str__(self) -> str:
        return f"Blockwise{{{self.core_op}, {self.signature}}}"

    __repr__ = __str__


def _fitted(gradient: Any, variable: Any) -> Any:
    """Return `gradient` in the shape of `variable`: repeated if it is one for all places, or summed over the
    axes that were broadcast.
    """
    ndim = variable.type.ndim
    if gradient.type.ndim < ndim:
        return alloc(gradient, *[shape_i(variable, axis) for axis in range(ndim)])
    axes = unbroadcast_axes(variable.type, gradient.type)
    return sum_over(gradient, axes, keepdims=True) if axes else gradient


def batched(core_op: Op, *inputs: Any) -> Any:
    """Return the output of `core_op`, or a list of several, at each place of the inputs' leading axes.

    Without such axes it is the Op itself.
    """
    tensors = [as_tensor_variable(value) for value in inputs]
    signature: Any = core_op.gufunc_signature  # type: ignore[attr-defined]
    due = parsed(signature).inputs
    is_one = all(v.type.ndim <= len(axes) for v, axes in zip(tensors, due, strict=True))
    return (core_op if is_one else Blockwise(core_op))(*tensors)


def vectorize_node(node: Apply, *inputs: Any) -> Sequence[Any]:
    """Return the outputs of `node` for `inputs` that may have more axes in front than the node's own: a
    batch.

    Raises NotImplementedError for an input that is no tensor.
    """
    op: Any = node.op
    if all(new.type.ndim == old.type.ndim for new, old in zip(inputs, node.inputs, strict=True)):
        return node.clone_with_new_inputs(inputs, strict=False).outputs
    found: Sequence[Any] | None = op.vectorized(node, inputs)
    if found is not None:
        return found
    for variable in (*node.inputs, *node.outputs):
        if not isinstance(variable.type, TensorType):
            raise NotImplementedError(f"Cannot vectorize node {node} with {variable} of type {variable.type}")
    signature = getattr(op, "gufunc_signature", None) or _own_signature(node)
    return Blockwise(op, signature).make_node(*inputs).outputs


def _own_signature(node: Apply) -> str:
    """Return a signature in which all axes of `node` have names of their own."""

    def axes(letter: str, variables: Sequence[Variable]) -> str:
        named = [
            ",".join(f"{letter}{position}{axis}" for axis in range(v.type.ndim))
            for position, v in enumerate(variables)
        ]
        return ",".join(f"({names})" for names in named)

    return f"{axes('i', node.inputs)}->{axes('o', node.outputs)}"


def vectorize_graph(outputs: Any, replace: Mapping[Any, Any]) -> Any:
    """Return `outputs` (one variable or several) with the keys of `replace` replaced by batches of them.

    A batch has more axes, in front. All batches broadcast together, also those of which only lengths are
    used. Raises ValueError if something in `replace` is no variable, and NotImplementedError for an Op on
    values that are no tensors.
    """
    if any(not isinstance(v, Variable) for pair in replace.items() for v in pair):
        raise ValueError(f"Vectorizing a graph: Some of the replaced items are not Variables: {replace}")
    several = [outputs] if isinstance(outputs, Variable) else list(outputs)
    results = _over_their_batches(several, graph_of_batches(several, replace), replace)
    return results[0] if isinstance(outputs, Variable) else results


def graph_of_batches(outputs: Sequence[Variable], replace: Mapping[Any, Any]) -> list[Any]:
    """Return `outputs` with the keys of `replace` replaced by batches of them.

    What is the same at all places of a batch, as it reads lengths only, may lack the batch's axes.
    """
    inputs = truncated_graph_inputs(outputs, ancestors_to_include=list(replace))
    memo: dict[Variable, Any] = {variable: replace.get(variable, variable) for variable in inputs}
    for node in toposort(outputs, blockers=inputs):
        if all(output in memo for output in node.outputs):
            continue
        found = vectorize_node(node, *[memo.get(v, v) for v in node.inputs])
        for old, new in zip(node.outputs, found, strict=True):
            memo.setdefault(old, new)
    return [memo[output] for output in outputs]


def _over_their_batches(
    outputs: Sequence[Variable], results: Sequence[Any], replace: Mapping[Any, Any]
) -> list[Any]:
    """Return `results` with all axes of the batches that `outputs` depend on."""
    most = max([_axes_in_front(new, old) for old, new in replace.items()], default=0)
    pairs = list(zip(results, outputs, strict=True))
    if all(_axes_in_front(r, o) == most and not any(r.type.broadcastable[:most]) for r, o in pairs if most):
        return list(results)
    read = _read_by(outputs, list(replace))
    return [
        _over_batches(result, output, {old: replace[old] for old in read[output]}) for result, output in pairs
    ]


def _axes_in_front(new: Any, old: Any) -> int:
    return getattr(new.type, "ndim", 0) - getattr(old.type, "ndim", 0)


def _read_by(outputs: Sequence[Variable], variables: Sequence[Variable]) -> dict[Variable, list[Variable]]:
    """Return which of `variables` each output depends on, also on their lengths only."""
    bits = {variable: 1 << place for place, variable in enumerate(variables)}
    for node in toposort(outputs, blockers=truncated_graph_inputs(outputs, ancestors_to_include=variables)):
        found = reduce(or_, [bits.get(v, 0) for v in node.inputs], 0)
        for output in node.outputs:
            bits.setdefault(output, found)
    return {
        output: [v for place, v in enumerate(variables) if bits.get(output, 0) >> place & 1]
        for output in outputs
    }


def _over_batches(result: Any, output: Variable, batches: Mapping[Any, Any]) -> Any:
    """Return `result`, which stands for `output`, repeated along the axes of `batches` that it lacks."""
    count = max([_axes_in_front(new, old) for old, new in batches.items()], default=0)
    own = _axes_in_front(result, output)
    padded = [pad(new, old.type.ndim + count) for old, new in batches.items() if _axes_in_front(new, old)]
    along = [[v for v in padded if not v.type.broadcastable[axis]] for axis in range(count)]
    is_lacking = own < count or any(along[axis] and result.type.broadcastable[axis] for axis in range(count))
    if not is_lacking or not isinstance(output.type, TensorType):
        return result
    lengths = [shape_i(found[0], axis) if found else number(1, "int64") for axis, found in enumerate(along)]
    return alloc(result, *lengths, *[shape_i(result, axis) for axis in range(own, result.type.ndim)])


def vectorize(func: Callable[..., Any], signature: str | None = None) -> Callable[..., Any]:
    """Return a function that applies `func`, which makes a graph, at each place of its arguments' leading
    axes.

    `signature` names the axes that `func` takes: "(m,n),(n)->(m)". Without it `func` takes 0-d tensors. The
    returned function raises TypeError for arguments that are no variables, and ValueError for too few axes
    and for another number of arguments or results than `signature` has.
    """

    def vectorized(*inputs: Any) -> Any:
        due = [()] * len(inputs) if signature is None else parsed(signature).inputs
        if len(inputs) != len(due):
            raise ValueError(f"Number of inputs does not match signature: {signature}")
        cores = [_core_of(value, len(axes)) for value, axes in zip(inputs, due, strict=True)]
        found = func(*cores)
        if found is None:
            raise ValueError(f"Vectorizing {func}: vectorize function returned no outputs")
        count = len(found) if isinstance(found, list | tuple) else 1
        if signature is not None and count != len(parsed(signature).outputs):
            raise ValueError(f"Number of outputs does not match signature: {signature}")
        return vectorize_graph(found, dict(zip(cores, inputs, strict=True)))

    return vectorized


def _core_of(value: Any, ndim: int) -> Any:
    if not isinstance(value, Variable) or not isinstance(value.type, TensorType):
        raise TypeError(f"Inputs to vectorize function must be TensorVariable, got {type(value)}")
    if value.type.ndim < ndim:
        raise ValueError(f"Input {value} has less dimensions than its signature, which has {ndim}")
    shape = value.type.shape[value.type.ndim - ndim :]
    return tensor_type(value.type.dtype, shape).make_variable(value.name)


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(__name__)
