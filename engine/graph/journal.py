"""`Journal`: the edits of a graph since the first moment that somebody may want back. It does, undoes and redoes them.

A change of a graph that fails, for whatever reason, is undone: the graph and its Features are as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

from engine.graph.edits import Edit
from engine.graph.features.protocol import revert_reason

if TYPE_CHECKING:
    from types import TracebackType

    from engine.graph.features.protocol import Feature
    from engine.graph.fgraph import FunctionGraph

P = ParamSpec("P")
R = TypeVar("R")
G = TypeVar("G", bound="FunctionGraph")


UNTOLD: Sequence[Feature] = ()


class Mark(NamedTuple):
    """A moment: how many edits there were, and the last of them."""

    position: int
    last: Edit | None


class Journal:
    """The edits of `graph`, oldest first. They are kept while a change is under way, and as long as a Feature asks."""

    def __init__(self, graph: FunctionGraph) -> None:
        self.graph = graph
        self.edits: list[Edit] = []
        self.keepers: list[Feature] = []
        self.depth = 0

    def do(self, edit: Edit) -> None:
        """Do `edit`, which no Feature knows of until `tell`."""
        edit.told = UNTOLD
        edit.do(self.graph)
        self.edits.append(edit)

    def tell(self, edit: Edit) -> None:
        """Tell all Features of `edit`; if one raises, those after it are not told."""
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
        """This moment."""
        return Mark(len(self.edits), self.edits[-1] if self.edits else None)

    def holds(self, mark: Mark) -> bool:
        """Whether the graph can be taken back to the moment `mark`."""
        if mark.position > len(self.edits):
            return False
        return mark.position == 0 or self.edits[mark.position - 1] is mark.last

    def undo_to(self, mark: Mark) -> tuple[list[Edit], list[Exception]]:
        """Undo what was done since `mark`: the edits, last one first, and what Features raised when told of it."""
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
        """Do again what `undo_to` undid, when the graph is as it left it; all of it, or nothing."""
        with self.all_or_nothing():
            for edit in reversed(undone):
                self.do(edit)
                self.tell(edit)

    def keep(self, feature: Feature) -> None:
        """Keep the edits from now on, until `feature` releases them."""
        if feature not in self.keepers:
            self.keepers.append(feature)

    def forget_before(self, mark: Mark, feature: Feature) -> Mark:
        """Forget the edits before `mark` if nobody but `feature` may want them; the moment `mark` as it is called then."""
        if self.keepers != [feature] or self.depth > 1:
            return mark
        del self.edits[: mark.position]
        return Mark(0, None)

    def release(self, feature: Feature) -> None:
        """End what `keep` began."""
        if feature in self.keepers:
            self.keepers.remove(feature)
        self.tidy()

    def tidy(self) -> None:
        """Forget edits that nobody may want back."""
        if not self.depth and not self.keepers:
            self.edits.clear()

    def all_or_nothing(self) -> Transaction:
        """A context: what was done in it is undone if an exception leaves it."""
        return Transaction(self)


class Transaction:
    """See `Journal.all_or_nothing`."""

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
                error.add_note(f"A Feature that was told that the change is undone raised {failure!r}")
        self.journal.depth -= 1
        self.journal.tidy()


def all_or_nothing(
    method: Callable[Concatenate[G, P], R],
) -> Callable[Concatenate[G, P], R]:
    """Make a method of a graph undo what it did when it raises."""

    @wraps(method)
    def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.journal.all_or_nothing():
            return method(self, *args, **kwargs)

    return run
