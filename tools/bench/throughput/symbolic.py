"""The functions of operations.py in PyTensor and in this engine, which have the same names for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from operations import OPERATIONS

SAME = (
    "exp log log1p expm1 tanh sigmoid softplus erf sin sqrt sum mean max prod cumsum clip where concatenate "
    "argmax dot sort"
).split()


def graph(pt: Any, name: str, types: Sequence[tuple[str, int]]) -> tuple[list[Any], Any]:
    """Return the inputs, of these `types` (dtype and rank), and the output of the operation `name`."""
    functions = SimpleNamespace(
        **{same: getattr(pt, same) for same in SAME},
        softmax=lambda m: (
            pt.special.softmax(m, axis=-1) if hasattr(pt, "special") else pt.softmax(m, axis=-1)
        ),
        logsumexp=lambda m: pt.logsumexp(m, axis=-1),
        ravel=pt.flatten,
        scatter_add=lambda x, index, y: x[index].inc(y),
    )
    operation = OPERATIONS[name]
    inputs = [
        pt.tensor(shape=broadcastable(argument, rank), dtype=dtype)
        for argument, (dtype, rank) in zip(operation.arguments, types, strict=True)
    ]
    return inputs, operation.compute(functions, *inputs)


def broadcastable(argument: str, rank: int) -> tuple[int | None, ...]:
    """Return the static shape of an argument: only rows and columns have lengths that are known."""
    return {"row": (1, None), "column": (None, 1)}.get(argument, (None,) * rank)


@lru_cache(maxsize=1)
def compiled(
    function: Callable[..., Any], pt: Any, name: str, types: tuple[tuple[str, int], ...]
) -> Callable[..., Any]:
    """Return the operation as compiled by `function(inputs, output)`, once for sizes in turn."""
    return function(*graph(pt, name, types))


def types_of(arrays: Sequence[Any]) -> tuple[tuple[str, int], ...]:
    """Return the dtype and the rank of each array."""
    return tuple([(array.dtype.name, array.ndim) for array in arrays])
