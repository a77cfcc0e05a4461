"""`Journal`: the log of a graph's edits, which it makes, undoes and redoes.

A change that fails, for whatever reason, is undone completely, in the graph and in its Features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from cachegraph.named_tuples import NamedTuple
from engine.graph.edits import Edit
from engine.graph.feature import Feature, revert_reason
from engine.graph.tables import GraphTables

if TYPE_CHECKING:
    from types import TracebackType

P = ParamSpec("P")
R = TypeVar("R")
G = TypeVar("G", bound="HasJournal")

UNTOLD: Sequence[Feature] = ()


class Mark(NamedTuple):
    """A point in a journal: the number of edits before it, and the last of them."""

    position: int
    last: Edit | None


class Journal:
    """The edits of `graph`, oldest first: those of the running change, and all while a Feature keeps them."""

    def __init__(self, graph: GraphTables) -> None:
        self.graph = graph
        self.edits: list[Edit] = []
        self.keepers: list[Feature] = []
        self.depth = 0

    def do(self, edit: Edit) -> None:
        """Make `edit`, without reporting it to Features."""
        edit.told = UNTOLD
        edit.do(self.graph)
        self.edits.append(edit)

    def tell(self, edit: Edit) -> None:
        """Report `edit` to all Features, until one raises."""
        listeners = self.graph.listeners(edit.callback)
        if listeners:
            told: list[Feature] = []
            edit.told = told
            arguments = edit.arguments()
            for feature in listeners:
                self.graph.call(feature, edit.callback, *arguments, edit.reason)
                told.append(feature)
        edit.told = None

    def mark(self) -> Mark:
        """Return the current point of the journal."""
        return Mark(len(self.edits), self.edits[-1] if self.edits else None)

    def holds(self, mark: Mark) -> bool:
        """Return True if the graph can be restored to the state at `mark`."""
        if mark.position > len(self.edits):
            return False
        return mark.position == 0 or self.edits[mark.position - 1] is mark.last

    def undo_to(self, mark: Mark) -> tuple[list[Edit], list[Exception]]:
        """Undo the edits since `mark`; return them, last one first, and the exceptions of Features."""
        undone: list[Edit] = []
        raised: list[Exception] = []
        while len(self.edits) > mark.position:
            edit = self.edits.pop()
            edit.undo(self.graph)
            undone.append(edit)
            raised += self._tell_undone(edit)
        return undone, raised

    def _tell_undone(self, edit: Edit) -> list[Exception]:
        raised = []
        for feature in self.graph.listeners(edit.undo_callback):
            if edit.told is None or feature in edit.told:
                try:
                    self.graph.call(
                        feature, edit.undo_callback, *edit.undo_arguments(), revert_reason(edit.reason)
                    )
                except Exception as error:
                    raised.append(error)
        return raised

    def redo(self, undone: Sequence[Edit]) -> None:
        """Make the edits that `undo_to` returned again, all or none, on the graph as `undo_to` left it."""
        with self.all_or_nothing():
            for edit in reversed(undone):
                self.do(edit)
                self.tell(edit)

    def keep(self, feature: Feature) -> None:
        """Keep all edits from now on, until `feature` releases them."""
        if feature not in self.keepers:
            self.keepers.append(feature)

    def forget_before(self, mark: Mark, feature: Feature) -> Mark:
        """Discard the edits before `mark` if only `feature` keeps the journal; return the new mark."""
        if self.keepers != [feature] or self.depth > 1:
            return mark
        del self.edits[: mark.position]
        return Mark(0, None)

    def release(self, feature: Feature) -> None:
        """Stop keeping the edits for `feature`."""
        if feature in self.keepers:
            self.keepers.remove(feature)
        self.tidy()

    def tidy(self) -> None:
        """Discard the edits if no change is running and no Feature keeps them."""
        if not self.depth and not self.keepers:
            self.edits.clear()

    def all_or_nothing(self) -> Transaction:
        """Return a context that undoes the edits made in it when it raises."""
        return Transaction(self)


class Transaction:
    """The context that `Journal.all_or_nothing` returns."""

    __slots__ = ("journal", "mark")

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def __enter__(self) -> Transaction:
        self.journal.depth += 1
        self.mark = self.journal.mark()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for failure in self.journal.undo_to(self.mark)[1]:
                error.add_note(f"A Feature raised {failure!r} when the change was undone")
        self.journal.depth -= 1
        self.journal.tidy()


class HasJournal(Protocol):
    """A graph with a journal."""

    journal: Journal


def all_or_nothing(
    method: Callable[Concatenate[G, P], R],
) -> Callable[Concatenate[G, P], R]:
    """Make a method of a graph undo its edits when it raises."""

    @wraps(method)
    def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.journal.all_or_nothing():
            return method(self, *args, **kwargs)

    return run
