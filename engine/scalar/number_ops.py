"""Users' scalar Ops by PyTensor's protocol: `impl` and the gradient are of numbers, and have no type rule.

Their derivative is a graph of numbers, which is made of elements here: each of its operations is applied to
tensors instead. `op` is a ScalarOp, whose module imports this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import NullGradientError
from engine.graph.traversal import io_toposort
from engine.graph.user_ops import given_by_user, given_to_user, users_method
from engine.graph.variables import Constant, Variable
from engine.scalar.type import scalar_type

if TYPE_CHECKING:
    from engine.graph.apply import Apply


def computed_by_numbers(op: Any, arrays: Sequence[Any]) -> Any:
    """Return what the user's `impl`, or `perform`, gives for the numbers of `arrays`, which broadcast: an
    array, or a tuple for several results."""
    kinds = [np.asarray(array).dtype for array in arrays]
    node = op.node_of(tuple([kind.name for kind in kinds]))
    dtypes = [variable.type.dtype for variable in node.outputs]
    compute = users_method(op, "impl", ()) or _performed(op, node)

    def of_numbers(
        *numbers: Any,
    ) -> Any:  # numpy gives Python's numbers, which raise where its own are infinite
        return compute(*[kind.type(number) for kind, number in zip(kinds, numbers, strict=True)])

    with np.errstate(all="ignore"):
        found = np.frompyfunc(of_numbers, len(arrays), len(dtypes))(*arrays)
    results = found if len(dtypes) > 1 else (found,)
    cast = tuple([np.asarray(each).astype(dtype) for each, dtype in zip(results, dtypes, strict=True)])
    return cast if len(dtypes) > 1 else cast[0]


def _performed(op: Any, node: Apply) -> Callable[..., Any]:
    def compute(*numbers: Any) -> Any:
        cells: list[list[Any]] = [[None] for _ in node.outputs]
        op.perform(node, numbers, cells)
        return cells[0][0] if len(cells) == 1 else tuple([cell[0] for cell in cells])

    return compute


def derivative_by_numbers(
    op: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    cotangents: Sequence[Any],
    apply: Callable[..., Any],
    wanted: Sequence[bool] | None,
) -> list[Any]:
    """Return the gradient of each input, made of what `op` gives for numbers; None where none flows. A
    gradient that depends on nothing is a number.

    Raises NullGradientError if `op` gives none, or none for an input that is `wanted`; ValueError for a wrong
    number of gradients.
    """
    numbers = [scalar_type(variable.type.dtype).make_variable() for variable in inputs]
    results = op.make_node(*numbers).outputs
    slopes = [
        given_to_user(None if each is None else scalar_type(each.type.dtype).make_variable())
        for each in cotangents
    ]
    method = users_method(op, "pullback", ("L_op", "grad"))
    if method is None:
        raise NullGradientError(f"Taking a gradient through {op}: it defines no pullback, L_op or grad", op)
    found = method(numbers, slopes) if method.__name__ == "grad" else method(numbers, results, slopes)
    if len(found) != len(inputs):
        raise ValueError(
            f"Pulling back through {op}: it has {len(inputs)} inputs, and gave {len(found)} gradients"
        )
    present = [
        None if wanted is not None and not wanted[place] else given_by_user(op, gradient)
        for place, gradient in enumerate(found)
    ]
    given = dict(zip((*numbers, *results, *slopes), (*inputs, *outputs, *cotangents), strict=True))
    return _on_elements(present, given, apply)


def _on_elements(
    gradients: Sequence[Any], given: dict[Variable, Any], apply: Callable[..., Any]
) -> list[Any]:
    """Return `gradients`, graphs of the numbers `given`, as `apply` makes them of what is given for these."""
    made = dict(given)

    def value_of(variable: Any) -> Any:
        if not isinstance(variable, Variable):
            return variable
        return variable.data if isinstance(variable, Constant) and variable not in made else made[variable]

    roots = [gradient for gradient in gradients if isinstance(gradient, Variable)]
    for node in io_toposort(list(given), roots):
        found = apply(node.op, *[value_of(variable) for variable in node.inputs])
        made.update(zip(node.outputs, found.owner.outputs, strict=True))
    return [None if gradient is None else value_of(gradient) for gradient in gradients]
