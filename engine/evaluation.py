"""The value of a variable for values of inputs: `Variable.eval`, which keeps the functions that it makes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from engine.compiling.executable import Function
from engine.functions import function
from engine.graph.frozen_nodes import Immutable
from engine.graph.traversal import get_var_by_name, graph_inputs, toposort
from engine.graph.variables import Variable


def evaluated(variable: Any, values: Mapping[Any, Any] | None = None, **options: Any) -> Any:
    """Return the value of `variable`, given `values` of inputs, by variable or by name. `options` are those
    of `function`.

    The function is kept for the next time, as long as the graph stays as it is. Options that cannot be hashed
    are warned of (UserWarning), and nothing is kept for them.

    Raises UnusedInputError for a value that the graph does not need, unless these are ignored, and ValueError
    for a name that no variable of the graph has, or more than one.
    """
    ignores = options.get("on_unused_input") == "ignore"
    given = {
        _named(variable, key): value
        for key, value in (values or {}).items()
        if not (ignores and isinstance(key, str) and not get_var_by_name([variable], key))
    }
    return _function(variable, tuple(given), options)(*given.values())


def _named(output: Any, key: Any) -> Any:
    """Return the variable `key`, or the one of that name in the graph of `output`."""
    if not isinstance(key, str):
        return key
    found = get_var_by_name([output], key)
    if not found:
        raise ValueError(f"Evaluating {output}: {key} not found in graph; name a variable that it needs")
    if len(found) > 1:
        raise ValueError(
            f"Evaluating {output}: Found multiple variables with name {key}; give the variable itself"
        )
    return found[0]


def _function(variable: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Function:
    """Return the function from `inputs` to `variable`: the one that is kept, if the graph is what it was."""
    key = (inputs, frozenset(options.items()) if _can_be_hashed(options) else None)
    if key[1] is None or isinstance(variable, Immutable):
        return function(list(inputs), variable, **options)
    parts = list(_parts([variable, *_variables_in(tuple(options.values()))]))
    kept: dict[Any, Any] = getattr(variable, "_fn_cache", {})
    found = kept.get(key)
    if found is None or found[0] != parts:
        found = kept[key] = parts, function(list(inputs), variable, **options)
        variable._fn_cache = kept
    made: Function = found[1]
    return made


def _can_be_hashed(options: dict[str, Any]) -> bool:
    try:
        hash(frozenset(options.items()))
    except TypeError:
        message = (
            "Keyword arguments could not be used to create a cache key for the function of a variable; it is "
            "made again each time"
        )
        warnings.warn(message, UserWarning, stacklevel=5)
        return False
    return True


def _parts(variables: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield what the graph of `variables` consists of: nodes, what they use, and updates that are due."""
    for node in toposort(variables):
        yield node, node.op, *node.inputs
    for root in graph_inputs(variables):
        yield root, getattr(root, "default_update", None)


def _variables_in(values: Any) -> list[Any]:
    """Return the variables in nested tuples."""
    if isinstance(values, tuple):
        return [variable for value in values for variable in _variables_in(value)]
    return [values] if isinstance(values, Variable) else []
