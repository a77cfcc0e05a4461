"""Features that protect values from being overwritten: inputs and outputs (`Supervisor`), and how outputs come about
(`NoOutputFromInplace`). They ask the graph's DestroyHandler, and forbid nothing where there is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.errors import InconsistencyError
from engine.graph.features.protocol import AlreadyThere, Feature, register_feature_callback, serve_one
from engine.graph.variables import Variable

if TYPE_CHECKING:
    from engine.graph.fgraph import FunctionGraph


class Supervisor(Feature):
    """Forbids a graph in which a node overwrites one of the variables `protected`, or an output.

    A number in `protected` stands for the input at that place when it is attached.
    """

    def __init__(self, protected: Iterable[Variable | int]) -> None:
        self.fgraph: FunctionGraph | None = None
        self.protected = list(protected)

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Serve `fgraph`, and no other; leave a graph alone that has a Supervisor."""
        if any(isinstance(feature, Supervisor) for feature in fgraph.features):
            raise AlreadyThere("Attaching Supervisor: the graph has one already")
        serve_one(self, fgraph)
        self.protected = [fgraph.inputs[item] if isinstance(item, int) else item for item in self.protected]

    @register_feature_callback
    def on_detach(self, fgraph: FunctionGraph) -> None:
        """Be free to serve another."""
        self.fgraph = None

    @register_feature_callback
    def validate(self, fgraph: FunctionGraph) -> None:
        """Refuses a graph with a node that overwrites what is protected."""
        if not hasattr(fgraph, "destroyers"):
            return
        for variable in (*self.protected, *fgraph.outputs):
            if fgraph.destroyers(variable):
                raise InconsistencyError(
                    f"Validating a graph: {fgraph.destroyers(variable)[0]} overwrites {variable}, which is protected"
                )

    def clone(self) -> Supervisor:
        inputs = [] if self.fgraph is None else self.fgraph.inputs
        return type(self)([inputs.index(item) if item in inputs else item for item in self.protected])


class NoOutputFromInplace(Feature):
    """Forbids a graph in which an output, at one of the places `protected_out_ids`, is what a node has overwritten."""

    def __init__(self, protected_out_ids: Iterable[int]) -> None:
        self.protected_out_ids = tuple(protected_out_ids)

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Leave a graph alone that has one."""
        if any(isinstance(feature, NoOutputFromInplace) for feature in fgraph.features):
            raise AlreadyThere("Attaching NoOutputFromInplace: the graph has one already")

    @register_feature_callback
    def validate(self, fgraph: FunctionGraph) -> None:
        """Refuses a graph with such an output."""
        if not hasattr(fgraph, "destroyers"):
            return
        for place in self.protected_out_ids:
            output = fgraph.outputs[place]
            if output.owner is not None and output.index in output.owner.op.destroy_map:
                raise InconsistencyError(
                    f"Validating a graph: output {place} ({output}) is computed by overwriting an input of "
                    f"{output.owner}, which is forbidden for this output"
                )
