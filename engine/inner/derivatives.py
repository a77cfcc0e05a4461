"""The derivative graphs of an OpFromGraph: of its own graph, or of the overrides that replace them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from operator import and_
from typing import TYPE_CHECKING, Any

from cachegraph.named_tuples import NamedTuple
from engine.errors import MissingInputError
from engine.gradient.arguments import as_derivative
from engine.gradient.backpropagation import pull_back
from engine.gradient.forward import push_forward
from engine.graph.absent_gradients import DisconnectedType
from engine.graph.op import Op
from engine.graph.traversal import graph_inputs
from engine.graph.variables import Variable
from engine.tensor.conversion import as_tensor_variable

if TYPE_CHECKING:
    from engine.inner.from_graph import OpFromGraph

Override = Callable[..., Any]
"""A function of lists of variables, or an Op on the variables, that gives a derivative or a list of them."""


class Derivative(NamedTuple):
    """A graph from `inputs` to the derivatives `outputs`; an output is None if nothing flows there."""

    inputs: list[Any]
    outputs: list[Any]


def pullback_graph(op: OpFromGraph, types: Sequence[Any], wanted: Sequence[bool]) -> Derivative:
    """Return the gradients of the inputs that are `wanted`.

    The graph's inputs are the Op's inputs, its outputs, and gradients of `types` for the outputs (None:
    no gradient).
    """
    inputs = [nominal.type.make_variable() for nominal in op.inner_inputs]
    outputs = op.fgraph.bind(inputs)
    cotangents = [None if type is None else type.make_variable() for type in types]
    found = _gradients(op, inputs, outputs, cotangents, wanted)
    gradients = [g if is_wanted else None for g, is_wanted in zip(found, wanted, strict=True)]
    return Derivative([*inputs, *outputs, *[c for c in cotangents if c is not None]], gradients)


def pushforward_graph(op: OpFromGraph, types: Sequence[Any]) -> Derivative:
    """Return the tangents of the outputs, given inputs and their tangents of `types` (None: no tangent)."""
    inputs = [nominal.type.make_variable() for nominal in op.inner_inputs]
    tangents = [None if type is None else type.make_variable() for type in types]
    every = [as_derivative(None, v) if t is None else t for v, t in zip(inputs, tangents, strict=True)]
    overrides = op.tangents
    if overrides is not None and not isinstance(overrides, tuple):
        found = _called(overrides, inputs, every)
    else:
        of_graph = push_forward(op.fgraph.bind(inputs), inputs, tangents)
        own: Sequence[Any] = overrides or (None,) * len(of_graph)
        found = [
            override(inputs, every) if override else t for override, t in zip(own, of_graph, strict=True)
        ]
    outputs = _checked(op, "pushforward", found, len(op.inner_outputs))
    return Derivative([*inputs, *[t for t in tangents if t is not None]], outputs)


def _gradients(
    op: OpFromGraph,
    inputs: list[Any],
    outputs: list[Any],
    cotangents: list[Any],
    wanted: Sequence[bool],
) -> list[Any]:
    """Return the gradient for each input, from its override or from the graph."""
    overrides = op.overrides
    every = [as_derivative(None, o) if c is None else c for o, c in zip(outputs, cotangents, strict=True)]
    if overrides is not None and not isinstance(overrides, tuple):
        found = _checked(op, "pullback", _called(overrides, inputs, outputs, every), len(inputs))
        return [g if reached else None for g, reached in zip(found, _reached(op, cotangents), strict=True)]
    own: Sequence[Any] = overrides or (None,) * len(inputs)
    every_input = list(zip(inputs, wanted, own, strict=True))
    asked = [v for v, is_wanted, override in every_input if is_wanted and not override]
    of_graph = dict(zip(asked, pull_back(outputs, cotangents, asked), strict=True))
    found = [
        override(inputs, outputs, every) if is_wanted and override else of_graph.get(v)
        for v, is_wanted, override in every_input
    ]
    return _checked(op, "pullback", found, len(inputs))


def _reached(op: OpFromGraph, cotangents: Sequence[Any]) -> list[bool]:
    """Return for each input if an output that depends on it has a cotangent."""
    given = [cotangent is not None for cotangent in cotangents]
    return [any(map(and_, row, given)) for row in op.connections()]


def _called(override: Override, *groups: list[Any]) -> list[Any]:
    """Return the list that `override` gives; an Op takes variables, other callables lists of them."""
    found = override(*chain(*groups)) if isinstance(override, Op) else override(*groups)
    return list(found) if isinstance(found, list | tuple) else [found]


def _checked(op: OpFromGraph, what: str, found: Sequence[Any], count: int) -> list[Any]:
    if len(found) != count:
        raise ValueError(
            f"Differentiating {op}: its {what} gave {len(found)} variables, {count} are expected (None "
            "where there is no derivative)"
        )
    absent = [v is None or isinstance(getattr(v, "type", None), DisconnectedType) for v in found]
    return [None if a else as_tensor_variable(v) for a, v in zip(absent, found, strict=True)]


def check_roots(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
    """Raise MissingInputError if `outputs` use a shared variable that is not in `inputs`."""
    for variable in graph_inputs(outputs, inputs):
        if hasattr(variable, "container") and variable not in inputs:
            raise MissingInputError(
                f"Making an OpFromGraph: its graph implicitly depends on shared variable {variable} of type "
                f"{variable.type}, which is not among its inputs; add it to the inputs, and pass it where "
                "the Op is applied",
                variable,
            )


def one_of(name: str, given: Any, old_name: str, old: Any) -> Any:
    """Return the argument given under one of two names; the older one warns. Raises TypeError for both."""
    if given is not None and old is not None:
        raise TypeError(
            f"Making an OpFromGraph: {name} and {old_name} are two names of one argument; give one of them"
        )
    if old is None:
        return given
    warnings.warn(f"{old_name} is deprecated in favor of {name}", FutureWarning, stacklevel=3)
    return old


def checked_overrides(name: str, overrides: Any, count: int, of: str) -> Any:
    """Return `overrides` as None, a callable or a tuple. Raises TypeError or ValueError otherwise."""
    if overrides is None or callable(overrides):
        return overrides
    if not isinstance(overrides, list | tuple) or not all(
        item is None or callable(item) for item in overrides
    ):
        raise TypeError(
            f"Making an OpFromGraph: {name} is {overrides!r}; it must be a callable, or a list of "
            "callables and None"
        )
    if len(overrides) != count:
        raise ValueError(f"Making an OpFromGraph: {name} has {len(overrides)} items for {count} {of}")
    return tuple(overrides) if any(overrides) else None
