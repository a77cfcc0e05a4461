"""The texts of Ops in printed graphs: PyTensor's, where the engine's Op does the same under another name."""

from __future__ import annotations

from typing import Any

from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.slicing import IncSubtensor, Subtensor
from engine.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor

_PARTS = str.maketrans({"a": "start", "b": "stop", "c": "step"})


def op_text(op: Any) -> str:
    """Return the text of an Op in a printed graph.

    An elementwise one has a capital, a change of axes the name of the function that makes it, and the parts
    of an index are called what they are: `Subtensor{start:stop}`.
    """
    if isinstance(op, DimShuffle):
        return _text_of_axes(op)
    text = str(op)
    if isinstance(op, Subtensor | IncSubtensor | AdvancedSubtensor | AdvancedIncSubtensor):
        name, brace, parts = text.partition("{")
        index = ", ".join(op.entries)
        return f"{name}{brace}{parts.replace(index, index.translate(_PARTS), 1)}"
    return text[:1].upper() + text[1:] if isinstance(op, Elemwise) else text


def _text_of_axes(op: DimShuffle) -> str:
    in_order = op.shuffle == tuple(sorted(op.shuffle))
    if op.augment and in_order and not op.drop:
        return f"ExpandDims{_axes(op.augment)}"
    if op.drop and in_order and not op.augment:
        return f"Squeeze{_axes(op.drop)}"
    if op.drop or op.augment or in_order:
        return str(op)
    is_of_matrices = op.shuffle == (*range(op.input_ndim - 2), op.input_ndim - 1, op.input_ndim - 2)
    return "MatrixTranspose" if is_of_matrices else f"Transpose{{axes={op.shuffle}}}"


def _axes(axes: tuple[int, ...]) -> str:
    return f"{{axis={axes[0]}}}" if len(axes) == 1 else f"{{axes={axes}}}"
