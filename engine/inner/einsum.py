"""`einsum`, numpy's, and its Op. The Op's graph replaces it when a function is made."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.inner.named_op import NamedOp
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.subscripts import Labelled, contracted, ordered, parsed

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

Path = tuple[tuple[int, ...], ...]


class Einsum(NamedOp):
    """A sum of products of tensors, by the convention of Einstein.

    `path` has the numbers of the one or two tensors of each step; their product is put behind those left.
    It is `optimized` if no other path needs fewer operations.
    """

    __props__ = (*(NamedOp.__props__ or ()), "subscripts", "path", "optimized")

    def __init__(self, subscripts: str, path: Path, optimized: bool) -> None:
        super().__init__()
        self.subscripts = subscripts
        self.path = path
        self.optimized = optimized

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        labels, output = parsed(self.subscripts, [x.type.ndim for x in inputs])
        left = [Labelled(*each) for each in zip(inputs, labels, strict=True)]
        for step in self.path:
            operands = [left[number] for number in step]
            left = [each for number, each in enumerate(left) if number not in step]
            kept = frozenset(output).union(*(each.labels for each in left))
            left.append(contracted(operands, kept))
        return [ordered(left[0], output)]

    def __str__(self) -> str:
        return f"Einsum{{{self.subscripts}}}"

    __repr__ = __str__


def einsum(subscripts: str, *operands: Any, optimize: None = None) -> TensorVariable:
    """Return the sum of products of tensors that `subscripts` describe, as numpy.einsum does.

    If all lengths are known, the products are taken in the order that needs the fewest operations,
    otherwise from right to left. Raises ValueError for subscripts that do not fit the tensors, and
    NotImplementedError for `optimize`.
    """
    if optimize is not None:
        raise NotImplementedError("Summing products: optimize is not there; the order of products is chosen")
    tensors = [as_tensor_variable(each) for each in operands]
    shapes = [each.type.shape for each in tensors]
    parsed(subscripts, [len(shape) for shape in shapes])
    is_known = not any(None in shape for shape in shapes)
    path = _best_path(subscripts, shapes) if is_known else _right_to_left(len(tensors))
    return Einsum(subscripts, path, is_known or len(tensors) <= 2)(*tensors)


def _best_path(subscripts: str, shapes: list[Any]) -> Path:
    arrays = [np.broadcast_to(np.float64(0), shape) for shape in shapes]
    found = tuple([tuple(step) for step in np.einsum_path(subscripts, *arrays, optimize="optimal")[0][1:]])
    # Where no order is better than another, all products are one step.
    return _right_to_left(len(shapes)) if max(map(len, found)) > 2 else found


def _right_to_left(count: int) -> Path:
    return ((0,),) if count == 1 else tuple(pairwise(range(count)[::-1]))
