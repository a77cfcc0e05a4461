"""`function`: from symbolic inputs and outputs to something that can be called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Protocol, cast

import numpy as np

from engine.compiler import CacheInfo, Compiled, Specification, compile_function
from engine.errors import ArgumentError, UnusedInputError
from engine.graph.dot import to_svg
from engine.graph.fgraph import FunctionGraph
from engine.graph.frozen import FrozenFunctionGraph
from engine.graph.replace import clone_replace
from engine.graph.traversal import graph_inputs
from engine.graph.variables import Constant, Variable
from engine.mode import Mode, get_mode
from engine.tensor.conversion import as_tensor_variable

Pairs = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


class Shared(Protocol):
    """A variable that holds a value of its own, in a container whose `storage` is a list of one."""

    type: Any
    name: str | None
    container: Any


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
            convert=_Converter(label, [*explicit, *cast(list[Variable], shared)]),
        )
    )
    return Function(compiled, explicit, shared, label, returns_list=not isinstance(outputs, Variable))


class Function:
    """A compiled function. Call it with one value an input, by position or by name.

    `cache_info` says how it came about; `maker.fgraph` is its graph after rewriting.
    """

    def __init__(
        self,
        compiled: Compiled,
        inputs: Sequence[Variable],
        shared: Sequence[Shared],
        name: str,
        returns_list: bool,
    ) -> None:
        runner = compiled.runner
        self.name = name
        self.cache_info: CacheInfo = compiled.info
        self.maker = _Maker(compiled, [*(v.name for v in inputs), *(v.name for v in shared)])
        self.input_names = tuple(variable.name for variable in inputs)
        self._run = runner.run
        self._n_inputs = len(inputs)
        self._storages = [variable.container.storage for variable in shared]
        self._updates = [(self._storages[p - len(inputs)], number) for p, number in runner.updates]
        self._outputs = runner.outputs
        self._returns_list = returns_list

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != self._n_inputs:
            args = self._arranged(args, kwargs)
        if self._storages:
            args = (*args, *[storage[0] for storage in self._storages])
        results = self._run(args)
        for storage, number in self._updates:
            storage[0] = results[number]
        if self._returns_list:
            return [results[number] for number in self._outputs]
        return results[self._outputs[0]]

    def _arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The values of all inputs in order; refuses (TypeError) missing, unknown and repeated ones."""
        if len(args) > self._n_inputs:
            raise TypeError(
                f"Calling {self.name}: it takes {self._n_inputs} arguments, {len(args)} were given"
            )
        names = self.input_names[len(args) :]
        unknown = [name for name in kwargs if names.count(name) != 1]
        if unknown:
            raise TypeError(
                f"Calling {self.name}: there is no argument {', '.join(unknown)}, or not just one, to give by name; "
                f"those left to give are {', '.join(map(str, names)) or 'none'}"
            )
        missing = [_label(name, len(args) + k) for k, name in enumerate(names) if name not in kwargs]
        if missing:
            raise TypeError(f"Calling {self.name}: no value was given for {', '.join(missing)}")
        return (*args, *[kwargs[cast(str, name)] for name in names])

    def _repr_svg_(self) -> str | None:
        return to_svg(self)

    def __repr__(self) -> str:
        return f"<Function {self.name}: {self.cache_info.outcome}>"


class _Maker(SimpleNamespace):
    """What made a function: `fgraph` is the graph after rewriting, read from the cache when it is first asked for."""

    def __init__(self, compiled: Compiled, names: Sequence[str | None]) -> None:
        super().__init__()
        self._compiled = compiled
        self._names = names
        self._fgraph: FunctionGraph | None = None

    @property
    def fgraph(self) -> FunctionGraph:
        if self._fgraph is None:
            self._fgraph = self._compiled.optimized()
            for variable, name in zip(self._fgraph.inputs, self._names, strict=True):
                variable.name = name
        return self._fgraph


class _Converter:
    """Makes a value what an input takes, or says which argument of which function should have been what."""

    def __init__(self, function: str, variables: Sequence[Variable]) -> None:
        self.function = function
        self.variables = variables

    def __call__(self, position: int, value: Any) -> np.ndarray[Any, Any]:
        variable = self.variables[position]
        try:
            array = variable.type.filter(value)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                self.function, _label(variable.name, position), str(variable.type), _found(value)
            ) from error
        # A subclass, a strided or an unaligned array is copied into a plain one: what the machine reads.
        plain = np.array(array, dtype=cast(Any, variable.type).numpy_dtype, order="C", subok=False, copy=None)
        return plain if plain.flags.aligned else plain.copy()


def _label(name: str | None, position: int) -> str:
    return f"{position} ({name!r})" if name else f"{position}"


def _found(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    text = repr(value)
    return f"{text if len(text) < 60 else text[:57] + '...'} ({type(value).__name__})"


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
