"""`ShapeFeature`, which rewrites of users ask for lengths, and `ShapeOptimizer`, which attaches it.

The engine's own rewrites need neither: `local_shape_i` follows one length to where it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.graph import (
    Apply,
    Feature,
    FunctionGraph,
    Variable,
    equal_computations,
    register_feature_callback,
)
from engine.rewriting.passes.shapes import length_elsewhere
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.tensor.matching import tensor_type_of
from engine.tensor.shape import folded_shape_i
from engine.tensor.type import TensorType


class ShapeFeature(Feature):
    """Answers questions for lengths of a graph's variables; the graph has it as `shape_feature`.

    A length is an expression of the graph's inputs as far as Ops tell their lengths. It is kept until an
    input of a node changes.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Variable, int], Variable] = {}
        self.shape_of: Mapping[Variable, tuple[Variable, ...] | None] = _Shapes(self)

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Be the graph's `shape_feature`. Raises ValueError if it has one."""
        if getattr(fgraph, "shape_feature", None) is not None:
            raise ValueError("Attaching a ShapeFeature: the graph has one, use fgraph.shape_feature")
        fgraph.shape_feature = self  # type: ignore[attr-defined]

    @register_feature_callback
    def on_detach(self, fgraph: FunctionGraph) -> None:
        del fgraph.shape_feature
        self._known.clear()

    @register_feature_callback
    def on_change_input(
        self, fgraph: FunctionGraph, node: Apply, index: int, old: Variable, new: Variable, reason: str | None
    ) -> None:
        self._known.clear()

    def get_shape(self, var: Variable, idx: int) -> Variable:
        """Return the length of the tensor `var` along the axis `idx`, a 0-d int64."""
        found = self._known.get((var, idx))
        if found is None:
            elsewhere = length_elsewhere(var, idx)
            found = self._known[var, idx] = folded_shape_i(var, idx) if elsewhere is None else elsewhere
        return found

    def shape_tuple(self, var: Variable) -> tuple[Variable, ...] | None:
        """Return the lengths of a tensor along all axes; None for anything else."""
        if not isinstance(var.type, TensorType):
            return None
        return tuple([self.get_shape(var, axis) for axis in range(tensor_type_of(var).ndim)])

    def same_shape(
        self, x: Variable, y: Variable, dim_x: int | None = None, dim_y: int | None = None
    ) -> bool:
        """Return True if two tensors are known to have equal lengths, or one axis of each.

        Raises IndexError for an axis that a tensor does not have.
        """
        first, second = self.shape_tuple(x), self.shape_tuple(y)
        if first is None or second is None:
            return False
        first = first if dim_x is None else (first[dim_x],)
        second = second if dim_y is None else (second[dim_y],)
        return len(first) == len(second) and equal_computations(list(first), list(second))


class _Shapes(Mapping[Variable, "tuple[Variable, ...] | None"]):
    """The lengths of any variable, as a mapping."""

    def __init__(self, feature: ShapeFeature) -> None:
        self._feature = feature

    def __getitem__(self, variable: Variable) -> tuple[Variable, ...] | None:
        return self._feature.shape_tuple(variable)

    def __contains__(self, variable: object) -> bool:
        return isinstance(variable, Variable)

    def __iter__(self) -> Iterator[Any]:
        return iter(dict.fromkeys(variable for variable, _ in self._feature._known))

    def __len__(self) -> int:
        return len(list(iter(self)))


class ShapeOptimizer(GraphRewriter):
    """Attaches a ShapeFeature to the graph that is rewritten, and changes nothing."""

    name = "shape_optimizer"

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        if getattr(fgraph, "shape_feature", None) is None:
            fgraph.attach_feature(ShapeFeature())

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        """Do nothing: the Feature is attached before."""
