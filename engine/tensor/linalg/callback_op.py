"""`CallbackOp`: the common base of the decompositions, which SciPy computes in a callback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.creation import zeros_like
from engine.tensor.linalg.solvers import as_floats
from engine.tensor.signature import lengths_by_name, parsed
from engine.tensor.type import tensor_type

SMALLER = "k"
"""The name of the smaller of the lengths `m` and `n` in these signatures."""


class CallbackOp(Op):
    """Base class of Ops on float matrices that `computed` computes by numpy or SciPy.

    `gufunc_signature` names the axes; `k` is the smaller of `m` and `n`. Where the computation fails, and for
    inputs that hold an infinity or NaN, floats of the result are NaN, and whole numbers count up from 0.
    Raises TypeError for inputs of another rank, and ValueError for lengths that do not fit.
    """

    gufunc_signature: str

    def computed(self, *arrays: Any) -> Sequence[Any]:
        """Return the outputs; LinAlgError if there are none."""
        raise NotImplementedError(f"{type(self).__name__} must implement computed()")

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        """Return the dtypes of the outputs for inputs of `dtype`; by default all the same."""
        return [dtype] * len(parsed(self.gufunc_signature).outputs)

    def make_node(self, *inputs: Any) -> Apply:
        signature, tensors = parsed(self.gufunc_signature), as_floats(*inputs)
        if [v.type.ndim for v in tensors] != [len(axes) for axes in signature.inputs]:
            given = ", ".join(str(v.type) for v in tensors)
            raise TypeError(f"Applying {self} to {given}: it takes {self.gufunc_signature.split('->')[0]}")
        shapes = self._output_shapes(f"Applying {self} to", [v.type.shape for v in tensors])
        dtypes = self.output_dtypes(tensors[0].type.dtype)
        types = [tensor_type(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True)]
        return Apply(self, tensors, [type.make_variable() for type in types])

    def _output_shapes(self, doing: str, shapes: Sequence[Sequence[int | None]]) -> list[tuple[Any, ...]]:
        signature = parsed(self.gufunc_signature)
        known: dict[str, int] = lengths_by_name(doing, signature.inputs, shapes)
        if "m" in known and "n" in known:
            known.setdefault(SMALLER, min(known["m"], known["n"]))
        return [tuple([known.get(name) for name in axes]) for axes in signature.outputs]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        shapes = self._output_shapes(f"Computing {self} of", [array.shape for array in inputs])
        try:
            finite = all(np.isfinite(array).all() for array in inputs)
            found: Sequence[Any] | None = self.computed(*inputs) if finite else None
        except np.linalg.LinAlgError:
            found = None
        if found is None:
            found = [_failed(o.type.dtype, shape) for o, shape in zip(node.outputs, shapes, strict=True)]
        for cell, output, array in zip(output_storage, node.outputs, found, strict=True):
            cell[0] = np.asarray(array, output.type.dtype, order="C")


def _failed(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if np.dtype(dtype).kind != "f":
        return np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return np.full(shape, np.nan, dtype)


def zeros_for_none(outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Return `cotangents` with zeros in the shape of the output where there is none."""
    return [zeros_like(o) if c is None else c for o, c in zip(outputs, cotangents, strict=True)]
