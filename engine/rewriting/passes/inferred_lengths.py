"""The lengths that a user's Op has for its outputs (`infer_shape`), as expressions of a graph.

The Op is asked about a node made of types alone, and what it says of that is then said of the node at hand.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from engine.graph.apply import Apply
from engine.graph.replace import rebuild
from engine.graph.shown import shown
from engine.graph.variables import Constant, Variable
from engine.tensor import shape_i
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.elemwise import cast
from engine.tensor.matching import tensor_type_of
from engine.tensor.type import tensor_type


def inferred_length(node: Apply, x: Variable, axis: int) -> Variable | None:
    """The length of `x`, which a user's Op computes, as its `infer_shape` has it; None if that says nothing, or raises.

    Refuses (ValueError) another number of shapes than outputs, or of lengths than axes.
    """
    infer: Any = getattr(node.op, "infer_shape", None)
    if infer is None or x.index is None:
        return None
    asked = shown(node)
    shapes = [_lengths(v) for v in asked.inputs]
    try:
        found = infer(None, asked, list(shapes))
    except NotImplementedError:
        return None
    except Exception as error:
        _warn(node, error)
        return None
    length = _checked(node, x, found, axis)
    return None if length is None else _said_of(node, length, asked, shapes)


def _lengths(variable: Variable) -> tuple[Any, ...]:
    """The lengths of `variable`: constants where its type has them, else variables that nothing computes."""
    unknown = tensor_type("int64", ())
    return tuple(
        [
            unknown.make_variable() if length is None else number(length, "int64")
            for length in tensor_type_of(variable).shape
        ]
    )


def _warn(node: Apply, error: Exception) -> None:
    warnings.warn(
        f"Asking {node.op} for shapes: its infer_shape raised {type(error).__name__}: {error}; lengths are taken from "
        "what it computes. It is shown types: not what the inputs are, or are computed from",
        RuntimeWarning,
        stacklevel=2,
    )


def _checked(node: Apply, x: Variable, found: Any, axis: int) -> Any:
    """The length of `x` along `axis` among what `infer_shape` gave."""
    if len(found) != len(node.outputs):
        raise ValueError(
            f"Asking {node.op} for shapes: infer_shape must give {len(node.outputs)}, it gave {len(found)}"
        )
    shape = found[x.index]
    if shape is None:
        return None
    if len(shape) != tensor_type_of(x).ndim:
        raise ValueError(
            f"Asking {node.op} for the shape of output {x.index}: infer_shape must give {tensor_type_of(x).ndim} lengths, "
            f"it gave {len(shape)}"
        )
    return shape[axis]


def _said_of(node: Apply, length: Any, asked: Apply, shapes: Sequence[tuple[Any, ...]]) -> Variable:
    """`length`, an expression of the node that the Op was `asked` about, as one of `node`."""
    memo: dict[Variable, Variable] = dict(zip(asked.inputs, node.inputs, strict=True))
    memo.update(zip(asked.outputs, node.outputs, strict=True))
    for variable, lengths in zip(node.inputs, shapes, strict=True):
        for axis, stand_in in enumerate(lengths):
            if not isinstance(stand_in, Constant):
                memo[stand_in] = shape_i(variable, axis)
    return rebuild([cast(as_tensor_variable(length), "int64")], memo)[0]
