"""`function`: from symbolic inputs and outputs to a compiled function."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from engine.compiling.arguments import In, Out, checked_inputs, without_out
from engine.compiling.copies_for_destroyers import with_copies
from engine.compiling.executable import ArgumentConverter, Function
from engine.compiling.interface import Interface
from engine.compiling.lookup import compile_function
from engine.compiling.mode import Mode, get_mode
from engine.compiling.request import FunctionRequest
from engine.compiling.updates import Expressions, Pairs, as_pairs
from engine.configdefaults import compiling
from engine.errors import MissingInputError, NullGradientError, UnusedInputError
from engine.graph.absent_gradients import NullType
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.represented import RepresentedType
from engine.graph.traversal import ancestors
from engine.graph.variables import Variable, has_noted_use
from engine.inner.held_objects import held_type, with_held_objects
from engine.scalar.type import ScalarType
from engine.tensor.conversion import as_symbolic
from engine.tensor.single_numbers import TensorsOfNumbers

Output = Variable | Out


def function(
    inputs: Sequence[Variable | In],
    outputs: Output | Sequence[Output] | Mapping[str, Output] | None = None,
    mode: Mode | str | None = None,
    updates: Pairs | None = None,
    givens: Pairs | None = None,
    no_default_updates: bool | list[Any] = False,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: bool = False,
    on_unused_input: str | None = None,
    trust_input: bool = False,
) -> Function:
    """Return a function that computes `outputs` from values of `inputs`.

    An input is a variable, or an In with its options; an output a variable or an Out. The function
    returns an array for a single output, a list of arrays for a list, and a dictionary of arrays for
    a dictionary. `updates` pairs shared variables with expressions for their values after each call. A
    shared variable in use that is not among them is updated by its `default_update`, if it has one,
    unless `no_default_updates` is True or a list that contains it. `givens` pairs variables with their
    replacements, which hold in updates too; without `rebuild_strict` these may have other types, if the
    graph can be built of them. `mode` is a Mode or its name ("FAST_RUN", "FAST_COMPILE", "NUMBA", "NUMPY").
    With `allow_input_downcast` arguments are cast to their inputs' dtypes even if digits are lost; False
    refuses a Python float for a float32, too. The function comes from the cache if it has an equal one: see
    `cache_info`. `accept_inplace` and `trust_input` are PyTensor's and decide nothing here.

    Refuses (TypeError, ValueError) inputs that are no variables, and updates of other types than their
    variables. Raises MissingInputError for a variable without a value, UnusedInputError for an input that
    comes twice, or that nothing was made of, unless `on_unused_input` is "ignore" or "warn", RuntimeError
    if an input has a given, NotImplementedError for a `profile`, NullGradientError for an undefined output.
    """
    if profile:
        raise NotImplementedError("Making a function: there are no profiles; use a profiler of Python's")
    every, outputs = checked_inputs(inputs), without_out(outputs)
    keys = _keys(outputs) if isinstance(outputs, Mapping) else None
    wanted = _as_list(outputs.values() if isinstance(outputs, Mapping) else outputs)
    updates, givens = _with_implicit([each for each in every if each.implicit], updates, givens)
    taken = [each for each in every if not each.implicit]
    states = {k: each.update for k, each in enumerate(taken) if each.update is not None}
    given, expressions = _on_tensors(taken, [*wanted, *states.values()])
    explicit = [each.variable for each in given]
    with compiling():
        found = Expressions(explicit, expressions, updates, givens, no_default_updates, rebuild_strict)
        shared = found.shared
        variables = [*explicit, *shared]
        graph = with_held_objects(_frozen(found, explicit, on_unused_input or "raise"))
        label = name or "function"
        types = tuple(held_type(variable.type) for variable in [*given, *shared])
        interface = Interface(
            types=types,
            n_outputs=len(wanted),
            updated=(*states, *(len(explicit) + shared.index(variable) for variable in found.updates)),
            convert=ArgumentConverter(label, [*given, *shared], len(explicit), allow_input_downcast, types),
        )
        compiled = compile_function(FunctionRequest(graph, interface, get_mode(mode), label))
    represented = _represented(wanted)
    is_list = not isinstance(outputs, Variable)
    return Function(compiled, given, shared, name, is_list, keys, represented, trust_input, variables)


def _represented(outputs: Sequence[Variable]) -> dict[int, RepresentedType]:
    """Return the types of the outputs whose values are no arrays, by their positions."""
    held = [held_type(variable.type) for variable in outputs]
    return {k: type for k, type in enumerate(held) if isinstance(type, RepresentedType)}


def _frozen(found: Expressions, explicit: list[Variable], on_unused_input: str) -> FrozenFunctionGraph:
    """Return the graph of a function; refuse an input that nothing needs (UnusedInputError).

    Who gave such an input gave a wrong one: it is named before one that is missing, as by PyTensor.
    """
    computed = [*found.outputs, *found.updates.values()]
    try:
        graph = FrozenFunctionGraph.from_io([*explicit, *found.shared], computed, replace_op=with_copies)
    except MissingInputError:
        _refuse_unused(explicit, set(ancestors(computed)), on_unused_input)
        raise
    _check_unused(graph, explicit, on_unused_input)
    return graph


def _with_implicit(implicit: list[In], updates: Pairs | None, givens: Pairs | None) -> tuple[Pairs, Pairs]:
    """Return `updates` and `givens` with shared variables in the place of `implicit` inputs."""
    states = {each.variable: each.shared() for each in implicit}
    own = [(states[each.variable], each.update) for each in implicit if each.update is not None]
    return [*as_pairs("updates", updates), *own], [*as_pairs("givens", givens), *states.items()]


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
        return [_defined(outputs)]
    if not isinstance(outputs, Iterable):
        raise TypeError(
            f"Making a function: outputs is {outputs!r}; it must be a variable, or a list or a dictionary "
            "of variables"
        )
    return [as_symbolic(_defined(output)) for output in outputs]


def _defined(output: Any) -> Any:
    type_of = getattr(output, "type", None)
    if isinstance(type_of, NullType):
        raise NullGradientError(f"Making a function: an output has no value; {type_of.why_null}", None)
    return output


def _on_tensors(inputs: list[In], outputs: list[Variable]) -> tuple[list[In], list[Variable]]:
    """Return `inputs` and `outputs`, with tensors in the place of numbers if there are any."""
    every: list[Any] = [*inputs, *outputs]
    if not any(isinstance(each.type, ScalarType) for each in every):
        return inputs, outputs
    tensors = TensorsOfNumbers([each.variable for each in inputs], outputs)
    return [each.of(tensor) for each, tensor in zip(inputs, tensors.inputs, strict=True)], tensors.outputs


def _refuse_unused(explicit: list[Variable], used: Collection[Variable], on_unused_input: str) -> None:
    unused = [v for v in explicit if v not in used and not has_noted_use(v)]
    if unused and on_unused_input == "raise":
        raise UnusedInputError(_unused(unused[0]), unused[0])


def _unused(variable: Variable) -> str:
    return (
        f"Making a function: input {variable} is not used by its outputs or updates; leave it out, or pass "
        "on_unused_input='ignore'"
    )


def _check_unused(graph: FrozenFunctionGraph, explicit: list[Variable], on_unused_input: str) -> None:
    if on_unused_input not in ("raise", "warn", "ignore"):
        raise ValueError(
            f"Making a function: on_unused_input={on_unused_input!r}; it must be raise, warn or ignore"
        )
    used = {variable for node in graph.nodes for variable in node.inputs} | set(graph.outputs)
    pairs = zip(explicit, graph.inputs, strict=False)
    unused = [v for v, nominal in pairs if nominal not in used and not has_noted_use(v)]
    if not unused or on_unused_input == "ignore":
        return
    message = _unused(unused[0])
    if on_unused_input == "raise":
        raise UnusedInputError(message, unused[0])
    import warnings

    warnings.warn(message, stacklevel=4)
