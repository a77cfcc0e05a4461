"""`function`: from symbolic inputs and outputs to a compiled function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.compiling.copies_for_destroyers import with_copies
from engine.compiling.executable import ArgumentConverter, Function
from engine.compiling.lookup import compile_function
from engine.compiling.mode import Mode, get_mode
from engine.compiling.request import FunctionRequest, Interface
from engine.compiling.updates import Expressions, Pairs
from engine.errors import UnusedInputError
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.variables import Constant, Variable
from engine.tensor.conversion import as_tensor_variable


def function(
    inputs: Sequence[Variable],
    outputs: Variable | Sequence[Variable] | Mapping[str, Variable] | None = None,
    mode: Mode | str | None = None,
    updates: Pairs | None = None,
    givens: Pairs | None = None,
    no_default_updates: bool | list[Any] = False,
    name: str | None = None,
    on_unused_input: str = "raise",
) -> Function:
    """Return a function that computes `outputs` from values of `inputs`.

    It returns an array for a single output, a list of arrays for a list, and a dictionary of arrays for
    a dictionary. `updates` pairs shared variables with expressions for their values after each call. A
    shared variable in use that is not among them is updated by its `default_update`, if it has one,
    unless `no_default_updates` is True or a list that contains it. `givens` pairs variables with their
    replacements, which hold in updates too. `mode` is a Mode or its name ("FAST_RUN", "FAST_COMPILE",
    "NUMBA", "NUMPY"). The function comes from the cache if it has an equal one: see `cache_info`.

    Refuses (TypeError, ValueError) inputs that are no variables or come twice, and updates of other
    types than their variables. Raises MissingInputError for a variable without a value, and
    UnusedInputError for an input that nothing needs, unless `on_unused_input` is "ignore" or "warn".
    """
    explicit = _check_inputs(inputs)
    keys = _keys(outputs) if isinstance(outputs, Mapping) else None
    wanted = _as_list(outputs.values() if isinstance(outputs, Mapping) else outputs)
    found = Expressions(explicit, wanted, updates, givens, no_default_updates)
    shared = found.shared
    graph = FrozenFunctionGraph.from_io(
        [*explicit, *shared], [*found.outputs, *found.updates.values()], replace_op=with_copies
    )
    _check_unused(graph, explicit, on_unused_input)
    label = name or "function"
    variables = [*explicit, *shared]
    interface = Interface(
        types=tuple(variable.type for variable in variables),
        n_outputs=len(wanted),
        updated=tuple(len(explicit) + shared.index(variable) for variable in found.updates),
        convert=ArgumentConverter(label, variables, len(explicit)),
    )
    compiled = compile_function(FunctionRequest(graph, interface, get_mode(mode), label))
    return Function(compiled, explicit, shared, label, not isinstance(outputs, Variable), keys)


def _check_inputs(inputs: Sequence[Variable]) -> list[Variable]:
    if not isinstance(inputs, list | tuple):
        raise TypeError(
            f"Making a function: inputs must be a list of variables, {type(inputs).__name__} was given"
        )
    for position, variable in enumerate(inputs):
        if not isinstance(variable, Variable) or isinstance(variable, Constant):
            raise TypeError(
                f"Making a function: input {position} is {variable!r}; it must be a variable, no constant"
            )
        if hasattr(variable, "container"):
            raise TypeError(
                f"Making a function: input {position}, {variable}, is shared; it is an input already"
            )
    if len(set(inputs)) != len(inputs):
        raise ValueError("Making a function: a variable is among the inputs twice")
    return list(inputs)


def _keys(outputs: Mapping[Any, Any]) -> tuple[str, ...]:
    for key in outputs:
        if not isinstance(key, str):
            raise TypeError(
                f"Making a function: outputs has the key {key!r}; the keys of its results must be strings"
            )
    return tuple(outputs)


def _as_list(outputs: Any) -> list[Variable]:
    if outputs is None:
        return []
    if isinstance(outputs, Variable):
        return [outputs]
    if not isinstance(outputs, Iterable):
        raise TypeError(
            f"Making a function: outputs is {outputs!r}; it must be a variable, or a list or a dictionary "
            "of variables"
        )
    return [as_tensor_variable(output) for output in outputs]


def _check_unused(graph: FrozenFunctionGraph, explicit: list[Variable], on_unused_input: str) -> None:
    if on_unused_input not in ("raise", "warn", "ignore"):
        raise ValueError(
            f"Making a function: on_unused_input={on_unused_input!r}; it must be raise, warn or ignore"
        )
    used = {variable for node in graph.nodes for variable in node.inputs} | set(graph.outputs)
    unused = [v for v, nominal in zip(explicit, graph.inputs, strict=False) if nominal not in used]
    if not unused or on_unused_input == "ignore":
        return
    message = (
        f"Making a function: input {unused[0]} is not used by its outputs or updates; leave it out, or pass "
        "on_unused_input='ignore'"
    )
    if on_unused_input == "raise":
        raise UnusedInputError(message, unused[0])
    import warnings

    warnings.warn(message, stacklevel=4)
