"""Lowering of what only Python can compute: the program stops and has `perform` called (evaluation.py), or what the Op has
numba compile (backend/numba/calls.py).

The callback's options, as JSON: {"op": the name of the Op (encoding.py, UsersOps), "inputs": and "outputs": a list of
[dtype, [length or null for each axis]]}.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.backend.callbacks import Callback
from engine.backend.lower import Lowering, OpRule
from engine.backend.rules.elementwise import elementwise_dims
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.tensor.elemwise import Elemwise
from engine.tensor.type import TensorType


def python_rule(node: Apply) -> OpRule | None:
    """The rule for `node`, which a user's Op computes; None if that has no perform(), or is not one on tensors."""
    if type(node.op) is Elemwise:
        return _ELEMENTWISE
    if type(node.op).perform is Op.perform and not hasattr(node.op, "numba_function"):
        return None
    is_of_tensors = all(isinstance(v.type, TensorType) for v in (*node.inputs, *node.outputs))
    return _PERFORM if is_of_tensors else None


def _lower_perform(lowering: Lowering, node: Apply) -> None:
    if any(map(lowering.is_needed, node.outputs)) or not _has_known_lengths(node):
        lowering.invoke(node, _callback(lowering, node), [[None] * v.type.ndim for v in node.outputs])
        return
    for output in node.outputs:
        lowering.dims[output] = tuple(map(lowering.table.constant, output.type.shape))


def _lower_elementwise(lowering: Lowering, node: Apply) -> None:
    dims = elementwise_dims(lowering, node)
    if any(map(lowering.is_needed, node.outputs)):
        lowering.invoke(node, _callback(lowering, node), [dims] * len(node.outputs))
        return
    lowering.dims.update(dict.fromkeys(node.outputs, dims))


def _callback(lowering: Lowering, node: Apply) -> Callback:
    options = {
        "op": lowering.name_of(node.op),
        "inputs": _described(node.inputs),
        "outputs": _described(node.outputs),
    }
    kind = "compiled" if hasattr(node.op, "numba_function") else "perform"
    return Callback(kind, 1, json.dumps(options, sort_keys=True, separators=(",", ":")), ())


def _described(variables: Sequence[Variable]) -> list[tuple[str, tuple[int | None, ...]]]:
    return [(variable.type.dtype, variable.type.shape) for variable in variables]


def _has_known_lengths(node: Apply) -> bool:
    return not any(None in output.type.shape for output in node.outputs)


def _reads(node: Apply) -> Sequence[Variable]:
    return node.inputs if _has_known_lengths(node) else ()


def _lengths(node: Apply) -> Sequence[Variable]:
    """Only the result tells the lengths that the types leave open."""
    return () if _has_known_lengths(node) else node.inputs


_PERFORM = OpRule(_lower_perform, _reads, _lengths)
_ELEMENTWISE = OpRule(_lower_elementwise)
