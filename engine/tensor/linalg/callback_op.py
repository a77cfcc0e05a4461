"""`CallbackOp`: the common base of the decompositions, which SciPy computes in a callback."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from engine.graph.apply import Apply
from engine.tensor.creation import zeros_like
from engine.tensor.linalg.equations import as_inexact
from engine.tensor.linalg.matrix_op import MatrixOp
from engine.tensor.signature import lengths_by_name, parsed
from engine.tensor.type import tensor_type

SMALLER = "k"
"""The name of the smaller of the lengths `m` and `n` in these signatures."""

Arrays = Sequence[Any]


class CallbackOp(MatrixOp):
    """Base class of Ops on matrices of floats or complex numbers that `computed` computes by numpy or SciPy.

    `gufunc_signature` names the axes; `k` is the smaller of `m` and `n`. Where the computation fails, and for
    inputs that hold an infinity or NaN, numbers of the result are NaN, and integers count up from 0.
    Raises TypeError for inputs of another rank, and ValueError for lengths that do not fit.
    """

    gufunc_signature: str
    takes_batches: ClassVar[bool] = False
    """True if `computed` takes arrays with a batch in front."""

    @property
    def is_called_back(self) -> bool:
        """True if no kernel computes this Op."""
        return True

    def computed(self, *arrays: Any) -> Sequence[Any]:
        """Return the outputs; LinAlgError if there are none."""
        raise NotImplementedError(f"{type(self).__name__} must implement computed()")

    def output_dtypes(self, dtype: str) -> Sequence[str]:
        """Return the dtypes of the outputs for inputs of `dtype`; by default all the same."""
        return [dtype] * len(parsed(self.gufunc_signature).outputs)

    def gradients(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        """Return the gradients, given one cotangent at least."""
        return super().pullback(inputs, outputs, cotangents)

    def make_node(self, *inputs: Any) -> Apply:
        signature, tensors = parsed(self.gufunc_signature), as_inexact(*inputs)
        if [v.type.ndim for v in tensors] != [len(axes) for axes in signature.inputs]:
            given = ", ".join(str(v.type) for v in tensors)
            raise TypeError(f"Applying {self} to {given}: it takes {self.gufunc_signature.split('->')[0]}")
        shapes = self._output_shapes("Applying", [v.type.shape for v in tensors])
        dtypes = self.output_dtypes(tensors[0].type.dtype)
        types = [tensor_type(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True)]
        return Apply(self, tensors, [type.make_variable() for type in types])

    def _output_shapes(self, doing: str, shapes: Sequence[Sequence[int | None]]) -> list[tuple[Any, ...]]:
        try:
            return _output_shapes(self.gufunc_signature, tuple(map(tuple, shapes)))
        except ValueError as error:
            raise ValueError(f"{doing} {self}: {error}") from error

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        for cell, result in zip(output_storage, self.computed_at_each(node, inputs, ()), strict=True):
            cell[0] = result

    def computed_at_each(self, node: Apply, arrays: Arrays, batch: tuple[int, ...]) -> list[Any]:
        """Return the outputs of `node` at each place of `batch`, the first axes of all `arrays`."""
        count = len(batch)
        shapes = self._output_shapes("Computing", [array.shape[count:] for array in arrays])
        results = [
            np.empty((*batch, *shape), output.type.dtype)
            for output, shape in zip(node.outputs, shapes, strict=True)
        ]
        if self.takes_batches and self._fill(results, arrays):
            return results
        for place in np.ndindex(*batch):
            parts = [result[place] if count else result for result in results]
            if not self._fill(parts, [array[place] for array in arrays]):
                for part in parts:
                    order = np.arange(part.size).reshape(part.shape)
                    part[...] = np.nan if part.dtype.kind in "fc" else order
        return results

    def _fill(self, results: Arrays, arrays: Arrays) -> bool:
        """Write what is computed of `arrays` into `results`; return False if that fails."""
        if not all(np.isfinite(array).all() for array in arrays):
            return False
        try:
            found = self.computed(*arrays)
        except np.linalg.LinAlgError:
            return False
        for result, array in zip(results, found, strict=True):
            result[...] = array
        return True

    def pullback(self, inputs: Arrays, outputs: Arrays, cotangents: Arrays) -> list[Any]:
        if all(cotangent is None for cotangent in cotangents):
            return [None] * len(inputs)
        return self.gradients(inputs, outputs, cotangents)


@lru_cache(maxsize=1024)
def _output_shapes(signature: str, shapes: tuple[tuple[int | None, ...], ...]) -> list[tuple[Any, ...]]:
    """Return the shapes of the outputs for inputs of `shapes`, with None for unknown lengths."""
    inputs, outputs = parsed(signature)
    known: dict[str, int] = lengths_by_name(inputs, shapes)
    if "m" in known and "n" in known:
        known.setdefault(SMALLER, min(known["m"], known["n"]))
    return [tuple([known.get(name) for name in axes]) for axes in outputs]


def zeros_for_none(outputs: Arrays, cotangents: Arrays) -> list[Any]:
    """Return `cotangents` with zeros in the shape of the output where there is none."""
    return [zeros_like(o) if c is None else c for o, c in zip(outputs, cotangents, strict=True)]
