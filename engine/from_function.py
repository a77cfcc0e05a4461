"""`wrap_py`: an Op made from a plain Python function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from cachegraph.fingerprint.origin import SCRIPTS, imported
from engine.graph.apply import Apply
from engine.graph.op import Op, as_type
from engine.graph.types import Type

Shapes = Sequence[tuple[Any, ...]]
InferShape = Callable[[Apply, list[tuple[Any, ...]]], Shapes]


class FromFunctionOp(Op):
    """Computes `fn` on arrays of `itypes`. It returns an array of the one type in `otypes`, or a
    sequence of arrays.

    Two are equal if made from the same function and types. It has no gradient. Running it raises
    ValueError for a wrong number of results.
    """

    __props__ = ("fn", "itypes", "otypes", "shapes_of")
    holds_code = True

    def __init__(
        self,
        fn: Callable[..., Any],
        itypes: Sequence[Type],
        otypes: Sequence[Type],
        shapes_of: InferShape | None = None,
    ) -> None:
        self.fn = fn
        self.itypes = tuple(itypes)
        self.otypes = tuple(otypes)
        self.shapes_of = shapes_of

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        found = self.fn(*inputs)
        results = found if isinstance(found, list | tuple) else (found,)
        if len(results) != len(output_storage):
            raise ValueError(
                f"Running {self}: its function must give {len(output_storage)} results, it gave "
                f"{len(results)}"
            )
        for cell, result in zip(output_storage, results, strict=True):
            cell[0] = result

    def infer_shape(self, fgraph: object, node: Apply, input_shapes: list[tuple[Any, ...]]) -> Shapes:
        """Return what the function given to `wrap_py` says; raise NotImplementedError if there was none."""
        if self.shapes_of is None:
            raise NotImplementedError(f"{self} was made without infer_shape")
        return self.shapes_of(node, input_shapes)

    def __reduce__(self) -> tuple[Any, ...]:
        place = getattr(self.fn, "__module__", None), getattr(self.fn, "__qualname__", None)
        if place[0] not in SCRIPTS and imported(*place) is self:
            return _import_op, place
        return FromFunctionOp, (self.fn, self.itypes, self.otypes, self.shapes_of)

    def __str__(self) -> str:
        return f"FromFunctionOp{{{getattr(self.fn, '__name__', type(self.fn).__name__)}}}"

    __repr__ = __str__


def wrap_py(
    itypes: Any, otypes: Any, infer_shape: InferShape | None = None
) -> Callable[[Callable[..., Any]], FromFunctionOp]:
    """Return a decorator that makes an Op from a function of arrays.

    `itypes` and `otypes` are a type or a list of types; makers of variables such as pt.dvector stand
    for types. `infer_shape(node, input_shapes)` returns a tuple of lengths for each output. Raises
    TypeError for anything but types, and for an `infer_shape` that is not callable.

        @wrap_py(itypes=[pt.dmatrix, pt.dmatrix], otypes=[pt.dmatrix])
        def product(a, b):
            return a @ b
    """
    types = [_as_types(items, name) for items, name in ((itypes, "itypes"), (otypes, "otypes"))]
    if infer_shape is not None and not callable(infer_shape):
        raise TypeError(f"Making an Op of a function: infer_shape is {infer_shape!r}; it must be a function")
    return lambda fn: FromFunctionOp(fn, types[0], types[1], infer_shape)


def as_op(
    itypes: Any, otypes: Any, infer_shape: InferShape | None = None
) -> Callable[[Callable[..., Any]], FromFunctionOp]:
    """Return what `wrap_py` returns; `as_op` is its older name in PyTensor, and warns."""
    warnings.warn("`as_op` is deprecated; use `wrap_py`", FutureWarning, stacklevel=2)
    return wrap_py(itypes, otypes, infer_shape)


def _as_types(items: Any, name: str) -> tuple[Type, ...]:
    found = []
    for item in items if isinstance(items, list | tuple) else [items]:
        if not (isinstance(item, Type) or callable(item)):
            raise TypeError(
                f"Making an Op of a function: {name} has {item!r}; give types, or makers of variables "
                "such as pt.dvector"
            )
        found.append(as_type(item))
    return tuple(found)


def _import_op(module: str, qualname: str) -> Any:
    found: Any = import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found
