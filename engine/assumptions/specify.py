"""`assume`: what a user knows about a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.assumptions.core import FactState
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.conversion import as_tensor_variable


class SpecifyAssumptions(Op):
    """Returns its input. `assumptions` are the names of properties, each with its FactState.

    A rewrite removes it, and remembers what it says.
    """

    __props__ = ("assumptions",)
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}
    differentiates_complex = True

    def __init__(self, assumptions: Mapping[str, FactState]) -> None:
        self.assumptions = tuple([(name, int(state)) for name, state in sorted(assumptions.items())])

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = inputs[0]

    def infer_shape(self, fgraph: None, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the input."""
        return [input_shapes[0]]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.make_node(*inputs).outputs

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return list(cotangents)

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return list(tangents)

    def __str__(self) -> str:
        facts = ", ".join(
            name if state == int(FactState.TRUE) else f"!{name}" for name, state in self.assumptions
        )
        return f"SpecifyAssumptions{{{facts}}}"

    __repr__ = __str__


def assume(
    x: Any,
    diagonal: bool | None = None,
    lower_triangular: bool | None = None,
    upper_triangular: bool | None = None,
    symmetric: bool | None = None,
    positive_definite: bool | None = None,
    orthogonal: bool | None = None,
    selection: bool | None = None,
    permutation: bool | None = None,
    unique_indices: bool | None = None,
) -> Any:
    """Return `x` as a tensor that rewrites may take to have these properties (True), or not to have them
    (False).

    Properties are those of the matrices in the last two axes, of which `unique_indices` is one of a vector of
    integers. Nothing checks them when the function runs: with a false one the results are undefined.
    """
    x = as_tensor_variable(x)
    given = {
        "diagonal": diagonal,
        "lower_triangular": lower_triangular,
        "upper_triangular": upper_triangular,
        "symmetric": symmetric,
        "positive_definite": positive_definite,
        "orthogonal": orthogonal,
        "selection": selection,
        "permutation": permutation,
        "unique_indices": unique_indices,
    }
    states = {
        name: FactState.TRUE if holds else FactState.FALSE
        for name, holds in given.items()
        if holds is not None
    }
    return SpecifyAssumptions(states)(x) if states else x
