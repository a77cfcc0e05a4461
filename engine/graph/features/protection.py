"""Features that forbid overwriting: `Supervisor` and `NoOutputFromInplace`.

They ask the graph's DestroyHandler; without one they forbid nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.errors import InconsistencyError
from engine.graph.feature import AlreadyThere, Feature, register_feature_callback, serve_one
from engine.graph.variables import Variable

if TYPE_CHECKING:
    from engine.graph.editable import EditableGraph


class Supervisor(Feature):
    """Forbids a graph in which a node overwrites one of the variables `protected`, or an output.

    A number in `protected` stands for the input at that position when the Feature is attached.
    """

    def __init__(self, protected: Iterable[Variable | int]) -> None:
        self.fgraph: EditableGraph | None = None
        self.protected = list(protected)

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        """Bind this Feature to `fgraph`; refuse a graph that has a Supervisor."""
        if any(isinstance(feature, Supervisor) for feature in fgraph.features):
            raise AlreadyThere("Attaching Supervisor: the graph has one already")
        serve_one(self, fgraph)
        self.protected = [fgraph.inputs[item] if isinstance(item, int) else item for item in self.protected]

    @register_feature_callback
    def on_detach(self, fgraph: EditableGraph) -> None:
        """Release the graph."""
        self.fgraph = None

    @register_feature_callback
    def validate(self, fgraph: EditableGraph) -> None:
        """Refuse a graph with a node that overwrites a protected variable."""
        if not hasattr(fgraph, "destroyers"):
            return
        for variable in (*self.protected, *fgraph.outputs):
            if fgraph.destroyers(variable):
                raise InconsistencyError(
                    f"Validating a graph: {fgraph.destroyers(variable)[0]} overwrites {variable}, "
                    "which is protected"
                )

    def clone(self) -> Supervisor:
        inputs = [] if self.fgraph is None else self.fgraph.inputs
        return type(self)([inputs.index(item) if item in inputs else item for item in self.protected])


class NoOutputFromInplace(Feature):
    """Forbids a graph that computes one of the outputs `protected_out_ids` by overwriting an input."""

    def __init__(self, protected_out_ids: Iterable[int]) -> None:
        self.protected_out_ids = tuple(protected_out_ids)

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        """Refuse a graph that has such a Feature."""
        if any(isinstance(feature, NoOutputFromInplace) for feature in fgraph.features):
            raise AlreadyThere("Attaching NoOutputFromInplace: the graph has one already")

    @register_feature_callback
    def validate(self, fgraph: EditableGraph) -> None:
        """Refuse a graph with such an output."""
        if not hasattr(fgraph, "destroyers"):
            return
        for place in self.protected_out_ids:
            output = fgraph.outputs[place]
            if output.owner is not None and output.index in output.owner.op.destroy_map:
                raise InconsistencyError(
                    f"Validating a graph: output {place} ({output}) is computed by overwriting an input of "
                    f"{output.owner}, which is forbidden for this output"
                )
