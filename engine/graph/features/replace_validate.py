"""Checkpoints (`History`), validation (`Validator`) and validated replacements of a graph."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from engine.configdefaults import config
from engine.errors import EngineError, InconsistencyError
from engine.graph.apply import Apply
from engine.graph.edits import ImportNode
from engine.graph.feature import (
    Feature,
    reason_text,
    refuse_second,
    register_feature_callback,
    serve_one,
)
from engine.graph.variables import place_text

if TYPE_CHECKING:
    from engine.graph.editable import EditableGraph
    from engine.graph.journal import Mark
    from engine.graph.variables import Variable


class ReplacementDidNotRemoveError(EngineError):
    """Raised when a replacement leaves a part in the graph that it should remove: `remaining`."""

    def __init__(self, message: str, remaining: object) -> None:
        super().__init__(message)
        self.remaining = remaining


class History(Feature):
    """Checkpoints of a graph: `checkpoint()` and `revert(checkpoint)`.

    A checkpoint is a number. Reverting to it undoes all later additions, changes and removals of inputs,
    outputs and nodes, and discards later checkpoints; the checkpoint itself can be reverted to repeatedly.
    The graph keeps its edits from the first checkpoint until the Feature is detached.
    """

    provides: ClassVar[tuple[str, ...]] = ("checkpoint", "revert")

    def __init__(self) -> None:
        self.fgraph: EditableGraph | None = None
        self._marks: dict[int, Mark] = {}
        self._count = 0

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        refuse_second(fgraph, self)
        serve_one(self, fgraph)

    @register_feature_callback
    def on_detach(self, fgraph: EditableGraph) -> None:
        self._marks.clear()
        self.fgraph = None
        fgraph.journal.release(self)

    def clone(self) -> History:
        return type(self)()

    def checkpoint(self, fgraph: EditableGraph) -> int:
        """Return a number for the current state of the graph."""
        return self._number(fgraph, fgraph.journal.mark())

    def revert(self, fgraph: EditableGraph, checkpoint: int) -> None:
        """Restore the state of the graph at `checkpoint`; refuse (ValueError) an unknown or discarded one.

        An exception of a Feature's callback is raised again after the graph is restored.
        """
        mark = self._marks.get(checkpoint)
        if mark is None or not fgraph.journal.holds(mark):
            raise ValueError(
                f"Reverting a graph to checkpoint {checkpoint}: it has no such checkpoint, or was reverted "
                "past it"
            )
        raised = fgraph.journal.undo_to(mark)[1]
        self._marks = {number: m for number, m in self._marks.items() if m.position <= mark.position}
        if raised:
            raise raised[0]

    def _number(self, fgraph: EditableGraph, mark: Mark) -> int:
        self._count += 1
        self._marks[self._count] = mark
        fgraph.journal.keep(self)
        return self._count


class Validator(Feature):
    """Validation of a graph by all its Features: `validate()` and `consistent()`."""

    provides: ClassVar[tuple[str, ...]] = ("validate", "consistent")

    @register_feature_callback
    def on_attach(self, fgraph: EditableGraph) -> None:
        refuse_second(fgraph, self)

    def validate(self, fgraph: EditableGraph) -> None:
        """Call `on_validate` of all Features: one that forbids the graph raises InconsistencyError."""
        fgraph.execute_callbacks("on_validate")

    def consistent(self, fgraph: EditableGraph) -> bool:
        """Return True if no Feature forbids the graph."""
        try:
            fgraph.validate()
        except InconsistencyError:
            return False
        return True


class ReplaceValidate(History, Validator):
    """Atomic replacements.

    A refusal (by a type, a missing input, a cycle or a Feature's `on_validate`) leaves graph, Features,
    history and checkpoints unchanged.
    """

    provides: ClassVar[tuple[str, ...]] = (
        *History.provides,
        *Validator.provides,
        "replace_validate",
        "replace_all_validate",
        "replace_all_validate_remove",
    )

    def __init__(self) -> None:
        super().__init__()
        self._latest: int | None = None
        self._removed: WeakSet[Apply] = WeakSet()

    def replace_validate(
        self,
        fgraph: EditableGraph,
        var: Variable,
        new_var: Variable,
        reason: str | None = None,
        **kwargs: Any,
    ) -> int:
        """Call `replace_all_validate` with one pair."""
        return self.replace_all_validate(fgraph, [(var, new_var)], reason, **kwargs)

    def replace_all_validate(
        self,
        fgraph: EditableGraph,
        replacements: Iterable[tuple[Variable, Variable]],
        reason: str | None = None,
        import_missing: bool = False,
        verbose: bool | None = None,
    ) -> int:
        """Replace the first of each pair by the second, in order; return a checkpoint of the state before.

        The checkpoint is valid until the next such call. Refuse (InconsistencyError) an invalid result, and
        one that contains a node which `replace_all_validate_remove` removed. With `verbose`, or
        without it if the flag `optimizer_verbose` is set, it prints what is replaced, and what is refused
        as invalid.
        """
        with fgraph.journal.all_or_nothing():
            mark = fgraph.journal.mark()
            self._replace_and_validate(fgraph, replacements, reason_text(reason), import_missing, verbose)
            return self._number_latest(fgraph, mark)

    def _replace_and_validate(
        self,
        fgraph: EditableGraph,
        replacements: Iterable[tuple[Variable, Variable]],
        reason: str | None,
        import_missing: bool,
        verbose: bool | None = None,
    ) -> None:
        start = len(fgraph.journal.edits)
        pairs = list(replacements)
        fgraph.replace_all(pairs, reason, import_missing, verbose)
        imported = [edit.node for edit in fgraph.journal.edits[start:] if isinstance(edit, ImportNode)]
        for node in imported:
            if node in self._removed and node in fgraph.apply_nodes:
                raise InconsistencyError(f"Replacing ({reason}): {node} was removed and would come back")
        try:
            fgraph.validate()
        except Exception as error:
            if pairs and config.is_printed(reason, verbose):
                place = place_text(pairs[-1][0])
                text = f"rewriting: validate failed on node {place}.\n Reason: {reason}, {error}\n"
                sys.stdout.write(text)
            raise

    def replace_all_validate_remove(
        self,
        fgraph: EditableGraph,
        replacements: Iterable[tuple[Variable, Variable]],
        remove: Sequence[Apply | Variable],
        reason: str | None = None,
        warn: bool = True,
        import_missing: bool = False,
    ) -> int:
        """Call `replace_all_validate`; refuse a result with one of `remove` (ReplacementDidNotRemoveError).

        With `warn` such a refusal is also a RuntimeWarning: the rewrite does not do what it declares.
        """
        with fgraph.journal.all_or_nothing():
            mark = fgraph.journal.mark()
            self._replace_and_validate(fgraph, replacements, reason_text(reason), import_missing)
            remaining = [part for part in remove if part in fgraph]
            if not remaining:
                self._removed.update(part for part in remove if isinstance(part, Apply))
                return self._number_latest(fgraph, mark)
            message = (
                f"Replacing ({reason_text(reason)}): {remaining[0]} was to be removed, but is still used"
            )
            if warn:
                warnings.warn(f"{message}; the replacement is not made", RuntimeWarning, stacklevel=3)
            raise ReplacementDidNotRemoveError(message, remaining[0])

    def _number_latest(self, fgraph: EditableGraph, mark: Mark) -> int:
        """Return a checkpoint for `mark`, and discard the last one that this method made."""
        if self._latest is not None:
            self._marks.pop(self._latest, None)
        if not self._marks:
            mark = fgraph.journal.forget_before(mark, self)
        self._latest = self._number(fgraph, mark)
        return self._latest

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_removed": list(self._removed)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._removed = WeakSet(state["_removed"])
