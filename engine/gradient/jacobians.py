"""Jacobians and Hessians: the gradient of each element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.gradient.arguments import as_given, as_variables, derivative_dtype
from engine.gradient.reverse import grad, pullback
from engine.graph.variables import Variable
from engine.scanning.construction import scan
from engine.tensor.blockwise import vectorize_graph
from engine.tensor.creation import arange
from engine.tensor.diagonals import eye
from engine.tensor.joining import stack
from engine.tensor.math import mul
from engine.tensor.rearranging import broadcast_to
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import flatten, lengths_along, reshape
from engine.tensor.type import TensorType

LARGEST_UNROLLED = 16
"""The largest number of rows that a Jacobian without a loop has."""


def jacobian(
    expression: Any,
    wrt: Any,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
    vectorize: bool = False,
) -> Any:
    """Return the gradient of each element of `expression` for `wrt`, a variable or a list or tuple of them.

    The result has the axes of `expression`, then those of the variable. Parts that do not depend on the
    element are computed once. With `vectorize` all rows are computed as one batch, by `vectorize_graph`,
    instead of one after the other: it needs more memory, and every Op must take batches.
    `consider_constant` and `disconnected_inputs` are those of `grad`; without a connection the result is
    0. Raises TypeError unless `expression` is a float tensor.
    """
    if not (isinstance(expression, Variable) and isinstance(expression.type, TensorType)):
        raise TypeError(f"Taking the Jacobian of {expression!r}: it must be a tensor variable")
    targets = as_variables(wrt)
    options = consider_constant, disconnected_inputs
    elements = flatten(expression)
    rows = (_batch_of_rows if vectorize else _rows_in_turn)(elements, targets, options)
    found = [_shaped(r, expression, target) for r, target in zip(rows, targets, strict=True)]
    return as_given(wrt, found)


def _rows_in_turn(elements: Any, targets: Sequence[Any], options: tuple[Any, str]) -> Sequence[Any]:
    """Return for each of `targets` the gradients of `elements`, a vector; in a loop if they are many."""

    def row(position: Any) -> list[Any]:
        return grad(elements[position], targets, *options)

    (size,) = elements.type.shape
    if size is not None and 0 < size <= LARGEST_UNROLLED:
        every = [row(position) for position in range(size)]
        return [stack(of_target) for of_target in zip(*every, strict=True)]
    positions = arange(elements.shape[0])
    rows: Sequence[Any] = scan(
        row, sequences=positions, return_list=True, return_updates=False, name="jacobian"
    )
    return rows


def _batch_of_rows(elements: Any, targets: Sequence[Any], options: tuple[Any, str]) -> Sequence[Any]:
    """Return for each of `targets` the gradients of `elements`, a vector, computed as one batch."""
    row = elements.type.clone(dtype=derivative_dtype(elements)).make_variable()
    of_one: Sequence[Any] = pullback(elements, targets, row, *options)
    size = elements.shape[0]
    rows = vectorize_graph(of_one, {row: eye(size, dtype=row.type.dtype)})
    # What no cotangent reaches is the same zeros for every row.
    return [
        one if one.type.ndim > target.type.ndim else broadcast_to(one, [size, *one.shape])
        for one, target in zip(rows, targets, strict=True)
    ]


def _shaped(rows: Any, expression: Any, target: Any) -> Any:
    """Return `rows`, one for each element of `expression`, with its axes."""
    # Also of a vector: rows that were counted do not fit one of another length.
    return reshape(rows, [*lengths_along(expression), *lengths_along(target)])


def hessian(
    cost: Any,
    wrt: Any,
    consider_constant: Iterable[Variable] | None = None,
    disconnected_inputs: str = "raise",
) -> Any:
    """Return the second derivatives of `cost`, a 0-d float, for `wrt`: a vector, or a list or tuple of them.

    Each vector gets the matrix for its own elements. `consider_constant` and `disconnected_inputs` are
    those of `grad`. Raises ValueError unless `wrt` are vectors, and TypeError unless `cost` is a 0-d
    float.
    """
    targets = as_variables(wrt)
    for target in targets:
        if target.type.ndim != 1:
            raise ValueError(f"Taking the Hessian for {target} of type {target.type}: it must be a vector")
    gradients = grad(cost, targets, consider_constant, disconnected_inputs)
    found = [
        # The gradient of a linear cost is constant; that is no error.
        jacobian(gradient, target, consider_constant, "ignore")
        for gradient, target in zip(gradients, targets, strict=True)
    ]
    return as_given(wrt, found)


def hessian_vector_product(cost: Any, wrt: Any, p: Any, **options: Any) -> Any:
    """Return the Hessian of `cost` times `p`, for `wrt`: a variable, or a list with one `p` for each.

    The gradient is taken twice; `options` are those of `grad`. Raises ValueError if `p` and `wrt`
    differ in number.
    """
    targets, vectors = as_variables(wrt), as_variables(p)
    if len(targets) != len(vectors):
        raise ValueError(
            f"Multiplying a Hessian for {len(targets)} variables by {len(vectors)}: give one for each"
        )
    gradients: Sequence[Any] = grad(cost, targets, **options)
    along = [sum_over(mul(gradient, vector)) for gradient, vector in zip(gradients, vectors, strict=True)]
    found = grad(sum(along[1:], start=along[0]), targets, **options)
    return as_given(wrt, found)
