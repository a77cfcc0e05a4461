"""`History`: checkpoints of a graph, and the way back to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engine.graph.features.protocol import Feature, refuse_second, register_feature_callback, serve_one

if TYPE_CHECKING:
    from engine.graph.fgraph import FunctionGraph
    from engine.graph.journal import Mark


class History(Feature):
    """Gives a graph `checkpoint()` and `revert(checkpoint)`.

    A checkpoint is a number. Reverting to it takes back everything that was done to the graph since: inputs, outputs and
    nodes added, changed and removed. It can be reverted to again and again, until the graph is taken back behind it;
    later checkpoints are then gone. From the first checkpoint on the edits are kept, until the Feature is detached.
    """

    provides: ClassVar[tuple[str, ...]] = ("checkpoint", "revert")

    def __init__(self) -> None:
        self.fgraph: FunctionGraph | None = None
        self._marks: dict[int, Mark] = {}
        self._count = 0

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Serve `fgraph`, and no other."""
        refuse_second(fgraph, self)
        serve_one(self, fgraph)

    @register_feature_callback
    def on_detach(self, fgraph: FunctionGraph) -> None:
        """Forget all checkpoints."""
        self._marks.clear()
        self.fgraph = None
        fgraph.journal.release(self)

    def clone(self) -> History:
        return type(self)()

    def checkpoint(self, fgraph: FunctionGraph) -> int:
        """A number for the graph as it is now."""
        return self._number(fgraph, fgraph.journal.mark())

    def revert(self, fgraph: FunctionGraph, checkpoint: int) -> None:
        """Make the graph what it was at `checkpoint`; refuses (ValueError) one that is gone or never was.

        What a Feature raises when it is told is raised here, after the graph has been taken back.
        """
        mark = self._marks.get(checkpoint)
        if mark is None or not fgraph.journal.holds(mark):
            raise ValueError(
                f"Reverting a graph to checkpoint {checkpoint}: it has no such checkpoint, or was taken back behind it"
            )
        raised = fgraph.journal.undo_to(mark)[1]
        self._marks = {number: m for number, m in self._marks.items() if m.position <= mark.position}
        if raised:
            raise raised[0]

    def _number(self, fgraph: FunctionGraph, mark: Mark) -> int:
        self._count += 1
        self._marks[self._count] = mark
        fgraph.journal.keep(self)
        return self._count
