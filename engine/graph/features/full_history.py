"""`FullHistory`: all steps of a graph's rewriting, which can be undone and redone one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.graph.feature import Feature, is_revert, register_feature_callback, serve_one

if TYPE_CHECKING:
    from engine.graph.apply import Apply
    from engine.graph.editable import EditableGraph
    from engine.graph.edits import Edit
    from engine.graph.journal import Mark
    from engine.graph.variables import Variable


class FullHistory(Feature):
    """A history of all states of its graph since it was attached, to move back and forth.

    A step is one change of an input of a node or of an output, with the nodes that it imports and prunes. A
    new change after going back discards the steps ahead; a refused one does not. `callback`, if given, is
    called after each change, but not when steps are undone or redone.
    """

    def __init__(self, callback: Callable[[], object] | None = None) -> None:
        self.callback = callback
        self.fgraph: EditableGraph | None = None
        self._steps: list[Mark] = []
        self._future: list[tuple[list[Edit], Mark | None]] = []
        self._walking = False

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        serve_one(self, fgraph)
        self._start = self._left = fgraph.journal.mark()
        fgraph.journal.keep(self)

    @register_feature_callback
    def on_detach(self, fgraph: EditableGraph) -> None:
        self.fgraph = None
        self._steps.clear()
        self._future.clear()
        fgraph.journal.release(self)

    @register_feature_callback
    def on_change_input(
        self, fgraph: EditableGraph, node: Apply, i: int, old: Variable, new: Variable, reason: str | None
    ) -> None:
        """Record a step, or discard the steps that somebody else undid."""
        if self._walking:
            return
        if is_revert(reason):
            while self._steps and not fgraph.journal.holds(self._steps[-1]):
                self._steps.pop()
            return
        self._steps.append(fgraph.journal.mark())
        if self.callback is not None:
            self.callback()

    def clone(self) -> FullHistory:
        return type(self)(self.callback)

    def __len__(self) -> int:
        """Return the number of steps, behind and ahead."""
        return len(self._steps) + sum(mark is not None for _, mark in self._ahead())

    def start(self) -> EditableGraph:
        """Go to the first state."""
        return self.goto(0)

    def end(self) -> EditableGraph:
        """Go to the last state."""
        return self.goto(len(self))

    def prev(self) -> EditableGraph:
        """Go one step back, if there is one."""
        return self.goto(max(0, len(self._steps) - 1))

    def next(self) -> EditableGraph:
        """Go one step forward, if there is one."""
        return self.goto(min(len(self), len(self._steps) + 1))

    def goto(self, checkpoint: int) -> EditableGraph:
        """Bring the graph to the state after `checkpoint` steps; refuse (ValueError) a wrong number."""
        fgraph, ahead = self.fgraph, self._ahead()
        if fgraph is None:
            raise ValueError("Walking through a history: it is attached to no graph")
        if not 0 <= checkpoint <= len(self):
            raise ValueError(f"Going to step {checkpoint} of a history: it has {len(self)} steps")
        self._walking = True
        try:
            self._walk(fgraph, checkpoint, ahead)
        finally:
            self._walking = False
            self._future, self._left = ahead, fgraph.journal.mark()
        return fgraph

    def _walk(
        self, fgraph: EditableGraph, checkpoint: int, ahead: list[tuple[list[Edit], Mark | None]]
    ) -> None:
        journal = fgraph.journal
        while len(self._steps) > checkpoint:
            step = self._steps[-1]
            after = journal.undo_to(step)[0]
            if after:
                ahead.append((after, None))
            self._steps.pop()
            ahead.append((journal.undo_to(self._steps[-1] if self._steps else self._start)[0], step))
        while ahead and (len(self._steps) < checkpoint or ahead[-1][1] is None):
            edits, mark = ahead[-1]
            journal.redo(edits)
            ahead.pop()
            if mark is not None:
                self._steps.append(mark)

    def _ahead(self) -> list[tuple[list[Edit], Mark | None]]:
        """Return the undone steps that can be redone, next one last: none if the graph was changed since."""
        here = None if self.fgraph is None else self.fgraph.journal.mark()
        return self._future if self._future and here == self._left else []
