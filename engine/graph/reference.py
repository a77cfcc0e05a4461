"""The numpy backend: graphs computed node by node by each Op's `perform`, the oracle of other backends.

User Ops are not trusted: `perform` gets copies, which it may keep or overwrite, and a result is copied if
anybody else may hold it, or if it is a part of another array.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from engine.errors import MissingInputError
from engine.graph.apply import Apply
from engine.graph.traversal import io_toposort
from engine.graph.user_ops import needs_python
from engine.graph.variables import Constant, Variable

_NOT_SHARED = 2
"""References to an object that only a list holds, while `sys.getrefcount` counts them."""


def run_node(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    """Return the values of the outputs of `node`, each exactly of its output's type.

    A user Op may also return a number or a list of numbers that the type holds exactly. Raise TypeError for
    other results, and re-raise exceptions of `perform` (with a note that names the Op, if it is a user's).
    """
    if needs_python(node.op):
        return _computed_by_user(node, inputs)
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    node.op.perform(node, inputs, storage)
    return [
        _plain(output.type.filter(value, strict=True))
        for output, (value,) in zip(node.outputs, storage, strict=True)
    ]


def _computed_by_user(node: Apply, inputs: Sequence[Any]) -> list[Any]:
    shown = [np.array(value) if isinstance(value, np.ndarray) else deepcopy(value) for value in inputs]
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    try:
        node.op.perform(node, shown, storage)
    except Exception as error:
        error.add_note(f"This was raised by the perform() of {node.op}.")
        raise
    return [own_result(node, position, cell) for position, cell in enumerate(storage)]


def own_result(node: Apply, position: int, cell: list[Any]) -> Any:
    """Return the result in `cell`, converted to the output's type and not shared with anybody."""
    if cell[0] is None:
        raise TypeError(
            f"Running {node.op}: output {position} was not given; perform() must put it into "
            f"output_storage[{position}][0]"
        )
    is_shared = sys.getrefcount(cell[0]) > _NOT_SHARED
    try:
        value = node.outputs[position].type.filter(cell[0], strict=isinstance(cell[0], np.ndarray))
    except (TypeError, ValueError) as error:
        raise type(error)(f"Running {node.op}: output {position}: {error}") from error
    if value is not cell[0]:
        is_shared = False
    if isinstance(value, np.ndarray) and (is_shared or value.base is not None):
        return np.array(value, order="C")
    return _plain(value)


def evaluate(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    values: Sequence[Any],
    order: Sequence[Apply] | None = None,
) -> list[Any]:
    """Return the values of `outputs`, given `values` for `inputs`; the graph may be mutable or frozen.

    Nodes run in `order` (None: that of `io_toposort`), which graphs with overwriting nodes must give.
    Values are converted as the types of the inputs allow (else TypeError); shared variables have their own.
    The results are C-ordered arrays that belong to the caller. Raise MissingInputError for a variable
    without a value, and the exceptions of `perform`.
    """
    if len(inputs) != len(values):
        raise ValueError(f"Evaluating a graph: it has {len(inputs)} inputs, {len(values)} values were given")
    known = {
        variable: _plain(variable.type.filter(value)) for variable, value in zip(inputs, values, strict=True)
    }
    for node in io_toposort(inputs, outputs) if order is None else order:
        arguments = [_value(variable, known) for variable in node.inputs]
        for output, value in zip(node.outputs, run_node(node, arguments), strict=True):
            known.setdefault(output, value)
    return [_owned(_value(output, known)) for output in outputs]


def _value(variable: Variable, known: dict[Variable, Any]) -> Any:
    if variable in known:
        return known[variable]
    if isinstance(variable, Constant):
        return variable.value
    if hasattr(variable, "get_value"):
        return variable.get_value(borrow=True)
    raise MissingInputError(
        f"Evaluating a graph: {variable} of type {variable.type} has no value; add it to the inputs", variable
    )


def _plain(value: Any) -> Any:
    """Return `value`; of an array of another class, whose operators may be others, a view as numpy's own."""
    return np.asarray(value) if isinstance(value, np.ndarray) else value


def _owned(value: Any) -> Any:
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value
