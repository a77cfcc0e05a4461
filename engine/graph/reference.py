"""The numpy backend: a graph computed node by node, by each Op's `perform`. The oracle of the other backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.errors import MissingInputError
from engine.graph.apply import Apply
from engine.graph.evaluation import computed
from engine.graph.traversal import io_toposort
from engine.graph.variables import Constant, Variable


def evaluate(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    values: Sequence[Any],
    order: Sequence[Apply] | None = None,
) -> list[Any]:
    """The values of `outputs`, given `values` for `inputs`; the graph may be frozen or not.

    Its nodes run in `order`, which a graph has to give if a node overwrites an input; None: that of `io_toposort`.
    Values are converted as the types of the inputs allow (TypeError otherwise); shared variables have their own.
    The results are C-ordered arrays that belong to the caller. Raises MissingInputError for a variable without a
    value, and what a `perform` raises; TypeError if one gives what its output's type does not hold.
    """
    if len(inputs) != len(values):
        raise ValueError(f"Evaluating a graph: it has {len(inputs)} inputs, {len(values)} values were given")
    known = {variable: variable.type.filter(value) for variable, value in zip(inputs, values, strict=True)}
    for node in io_toposort(inputs, outputs) if order is None else order:
        arguments = [_value(variable, known) for variable in node.inputs]
        for output, value in zip(node.outputs, computed(node, arguments), strict=True):
            known.setdefault(output, value)
    return [_owned(_value(output, known)) for output in outputs]


def _value(variable: Variable, known: dict[Variable, Any]) -> Any:
    if variable in known:
        return known[variable]
    if isinstance(variable, Constant):
        return variable.data
    if hasattr(variable, "get_value"):
        return variable.get_value(borrow=True)
    raise MissingInputError(
        f"Evaluating a graph: {variable} of type {variable.type} has no value; add it to the inputs", variable
    )


def _owned(value: Any) -> Any:
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value
