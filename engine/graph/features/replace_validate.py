"""`Validator` and `ReplaceValidate`: replacements that are made only if every Feature allows the graph that results."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from engine.errors import EngineError, InconsistencyError
from engine.graph.apply import Apply
from engine.graph.edits import Import
from engine.graph.features.history import History
from engine.graph.features.protocol import Feature, reason_text, refuse_second, register_feature_callback

if TYPE_CHECKING:
    from engine.graph.fgraph import FunctionGraph
    from engine.graph.journal import Mark
    from engine.graph.variables import Variable


class ReplacementDidNotRemoveError(EngineError):
    """A replacement that was to remove a part of the graph did not. `remaining` is that part."""

    def __init__(self, message: str, remaining: object) -> None:
        super().__init__(message)
        self.remaining = remaining


class Validator(Feature):
    """Gives a graph `validate()` and `consistent()`: do all Features allow it as it is?"""

    provides: ClassVar[tuple[str, ...]] = ("validate", "consistent")

    @register_feature_callback
    def on_attach(self, fgraph: FunctionGraph) -> None:
        """Leave a graph alone that can be validated."""
        refuse_second(fgraph, self)

    def validate(self, fgraph: FunctionGraph) -> None:
        """Ask all Features; the first that forbids the graph raises InconsistencyError."""
        fgraph.execute_callbacks("validate")

    def consistent(self, fgraph: FunctionGraph) -> bool:
        """Whether all Features allow the graph."""
        try:
            fgraph.validate()
        except InconsistencyError:
            return False
        return True


class ReplaceValidate(History, Validator):
    """Gives a graph replacements that are made all or not at all: what is refused, by a type, a missing input, a cycle or
    a Feature's `validate`, leaves graph, Features, history and checkpoints as they were."""

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
        fgraph: FunctionGraph,
        var: Variable,
        new_var: Variable,
        reason: str | None = None,
        **kwargs: Any,
    ) -> int:
        """`replace_all_validate` of one pair."""
        return self.replace_all_validate(fgraph, [(var, new_var)], reason, **kwargs)

    def replace_all_validate(
        self,
        fgraph: FunctionGraph,
        replacements: Iterable[tuple[Variable, Variable]],
        reason: str | None = None,
        import_missing: bool = False,
    ) -> int:
        """Replace the first of each pair by the second, in order, if the result is valid; a checkpoint from before.

        The checkpoint is good until the next such call, unlike those that are asked for. Nodes that
        `replace_all_validate_remove` removed may not come back (InconsistencyError).
        """
        with fgraph.journal.all_or_nothing():
            mark = fgraph.journal.mark()
            self._replace_and_validate(fgraph, replacements, reason_text(reason), import_missing)
            return self._number_latest(fgraph, mark)

    def _replace_and_validate(
        self,
        fgraph: FunctionGraph,
        replacements: Iterable[tuple[Variable, Variable]],
        reason: str | None,
        import_missing: bool,
    ) -> None:
        start = len(fgraph.journal.edits)
        fgraph.replace_all(replacements, reason, import_missing)
        imported = [edit.node for edit in fgraph.journal.edits[start:] if isinstance(edit, Import)]
        for node in imported:
            if node in self._removed and node in fgraph.apply_nodes:
                raise InconsistencyError(f"Replacing ({reason}): {node} was removed and would come back")
        fgraph.validate()

    def replace_all_validate_remove(
        self,
        fgraph: FunctionGraph,
        replacements: Iterable[tuple[Variable, Variable]],
        remove: Sequence[Apply | Variable],
        reason: str | None = None,
        warn: bool = True,
        import_missing: bool = False,
    ) -> int:
        """`replace_all_validate`, refused (ReplacementDidNotRemoveError) if any of `remove` is still in the graph after.

        With `warn`, a refusal is a RuntimeWarning too: the rewrite is wrong about what it does.
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

    def _number_latest(self, fgraph: FunctionGraph, mark: Mark) -> int:
        """A checkpoint for `mark`, instead of the last one that was made here."""
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
