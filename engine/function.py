"""`function`: from symbolic inputs and outputs to something that can be called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from engine.compiler import Specification, compile_function
from engine.errors import UnusedInputError
from engine.executable import ArgumentConverter, Function, Shared
from engine.graph.frozen import FrozenFunctionGraph
from engine.graph.replace import clone_replace
from engine.graph.traversal import graph_inputs
from engine.graph.variables import Constant, Variable
from engine.mode import Mode, get_mode
from engine.tensor.conversion import as_tensor_variable

Pairs = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


def function(
    inputs: Sequence[Variable],
    outputs: Variable | Sequence[Variable] | None = None,
    updates: Pairs | None = None,
    givens: Pairs | None = None,
    mode: Mode | str | None = None,
    name: str | None = None,
    on_unused_input: str = "raise",
) -> Function:
    """A callable that computes `outputs` (one: an array; several: a list of arrays) from values of `inputs`.

    `updates` pairs shared variables with what replaces their values after each call; `givens` pairs variables with
    what is used in their place; `mode` is a Mode or its name ("FAST_RUN", "FAST_COMPILE", "NUMBA", "NUMPY").
    The function comes from the cache if it holds an equal one: see `cache_info`.

    Refuses (TypeError, ValueError) inputs that are no variables or come twice, updates of other types than their
    variables, MissingInputError for what has no value, UnusedInputError for an input that nothing needs (unless
    `on_unused_input` is "ignore" or "warn").
    """
    explicit = _check_inputs(inputs)
    wanted_outputs = _as_list(outputs)
    new_values = _check_updates(updates)
    expressions = _apply_givens([*wanted_outputs, *new_values.values()], givens)
    shared = _shared_variables(explicit, expressions, new_values)
    graph = FrozenFunctionGraph.from_io([*explicit, *cast(list[Variable], shared)], expressions)
    _check_unused(graph, explicit, on_unused_input)
    label = name or "function"
    compiled = compile_function(
        Specification(
            graph=graph,
            n_outputs=len(wanted_outputs),
            updated=tuple(len(explicit) + shared.index(variable) for variable in new_values),
            mode=get_mode(mode),
            name=label,
            convert=ArgumentConverter(label, [*explicit, *cast(list[Variable], shared)]),
        )
    )
    return Function(compiled, explicit, shared, label, returns_list=not isinstance(outputs, Variable))


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


def _as_list(outputs: Any) -> list[Variable]:
    if outputs is None:
        return []
    if isinstance(outputs, Variable):
        return [outputs]
    return [as_tensor_variable(output) for output in outputs]


def _check_updates(updates: Pairs | None) -> dict[Shared, Variable]:
    pairs = list(updates.items() if isinstance(updates, Mapping) else updates or ())
    checked: dict[Shared, Variable] = {}
    for shared, value in pairs:
        if not hasattr(shared, "container"):
            raise TypeError(f"Making a function: {shared!r} is updated; only a shared variable can be")
        if shared in checked:
            raise ValueError(f"Making a function: shared variable {shared} is updated twice")
        try:
            checked[shared] = shared.type.filter_variable(as_tensor_variable(value))
        except TypeError as error:
            raise TypeError(
                f"Making a function: the update of {shared} must have its type {shared.type}; found {value!r} of type "
                f"{getattr(value, 'type', type(value).__name__)}; cast it first"
            ) from error
    return checked


def _apply_givens(expressions: list[Variable], givens: Pairs | None) -> list[Variable]:
    if not givens:
        return expressions
    pairs = givens.items() if isinstance(givens, Mapping) else givens
    return clone_replace(
        expressions, [(old, old.type.filter_variable(as_tensor_variable(new))) for old, new in pairs]
    )


def _shared_variables(
    explicit: list[Variable], expressions: list[Variable], updated: Iterable[Shared]
) -> list[Shared]:
    """The shared variables that the expressions need or that are updated, in the order of the graph's structure."""
    roots = [v for v in graph_inputs(expressions, explicit) if hasattr(v, "container")]
    return list(dict.fromkeys([*cast(list[Shared], roots), *updated]))


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
