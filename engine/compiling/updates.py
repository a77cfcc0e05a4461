"""Updates of shared variables: those that the caller asks for, and default updates of the variables in
use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from engine.graph.replace import clone_replace
from engine.graph.traversal import graph_inputs
from engine.graph.variables import Variable
from engine.shared_variables import as_update
from engine.tensor.conversion import as_symbolic

Pairs = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


class Expressions:
    """The expressions that a function computes: `outputs`, and in `updates` the new values of shared
    variables.

    `givens` are replaced in all of them, with `rebuild_strict` by variables of their types. `shared` are the
    shared variables in use, in the order of the graph's structure, then those that are only updated. The
    caller provides the values of `inputs`, even of computed ones. Refuses (TypeError, ValueError) updates of
    variables that are not shared, of other types than their variables, or given twice, and (RuntimeError)
    givens in the place of an input.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        updates: Pairs | None,
        givens: Pairs | None,
        no_default_updates: bool | list[Any],
        rebuild_strict: bool = True,
    ) -> None:
        self._inputs = inputs
        self._rebuild_strict = rebuild_strict
        self._givens = _replacements(givens, inputs, rebuild_strict)
        self._is_excluded = _exclusion(no_default_updates)
        given = _checked(updates)
        replaced = self._replaced([*outputs, *given.values()])
        self.outputs = replaced[: len(outputs)]
        self.updates: dict[Any, Variable] = dict(zip(given, replaced[len(outputs) :], strict=True))
        self.shared: list[Any] = []
        self._reach(replaced)
        self.shared = list(dict.fromkeys([*self.shared, *self.updates]))

    def _replaced(self, expressions: list[Variable]) -> list[Variable]:
        if not self._givens:
            return expressions
        found: list[Variable] = clone_replace(expressions, self._givens, rebuild_strict=self._rebuild_strict)
        return found

    def _reach(self, expressions: Sequence[Variable]) -> None:
        """Add the shared variables that `expressions` need, their default updates, the shared variables
        of these, and so on."""
        while expressions:
            roots: Iterable[Any] = graph_inputs(expressions, self._inputs)
            found = [v for v in roots if hasattr(v, "container")]
            self.shared = list(dict.fromkeys([*self.shared, *found]))
            due = [v for v in found if self._is_due(v)]
            expressions = self._replaced([v.default_update for v in due])
            self.updates.update(zip(due, expressions, strict=True))

    def _is_due(self, variable: Any) -> bool:
        is_set = variable.default_update is not None and variable not in self.updates
        return is_set and not self._is_excluded(variable)


def _exclusion(no_default_updates: bool | list[Any]) -> Any:
    """Return a function that returns True if a shared variable must not get its default update."""
    if isinstance(no_default_updates, bool):
        return lambda variable: no_default_updates
    if isinstance(no_default_updates, list):
        return lambda variable: any(variable is excluded for excluded in no_default_updates)
    raise TypeError(
        f"Making a function: no_default_updates is {no_default_updates!r}; it must be True, False or a list "
        "of shared variables"
    )


def _replacements(
    givens: Pairs | None, inputs: Sequence[Variable], strict: bool
) -> list[tuple[Variable, Variable]]:
    pairs = as_pairs("givens", givens)
    for old, new in pairs:
        if old in inputs:
            raise RuntimeError(
                f"Making a function: {old} is an input, and givens replace it by {new}; take it out of one "
                "of them"
            )
    found = [(old, as_symbolic(new)) for old, new in pairs]
    return [(old, old.type.filter_variable(new)) for old, new in found] if strict else found


def _checked(updates: Pairs | None) -> dict[Any, Variable]:
    checked: dict[Any, Variable] = {}
    for shared, value in as_pairs("updates", updates):
        if not hasattr(shared, "container"):
            raise TypeError(f"Making a function: {shared!r} is updated; only a shared variable can be")
        if shared in checked:
            raise ValueError(f"Making a function: shared variable {shared} is updated twice")
        checked[shared] = as_update(shared, value, "Making a function")
    return checked


def as_pairs(what: str, given: Pairs | None) -> Collection[tuple[Any, Any]]:
    """Return the pairs in `given`; refuses (TypeError) anything but a mapping or pairs that begin with
    a variable."""
    if isinstance(given, Mapping):
        given = list(given.items())
    pairs = list(given) if isinstance(given, Iterable) else given
    if pairs is None:
        return []
    if isinstance(pairs, list):
        is_pair = [isinstance(p, tuple | list) and len(p) == 2 and isinstance(p[0], Variable) for p in pairs]
        if all(is_pair):
            return [(old, new) for old, new in pairs]
        pairs = pairs[is_pair.index(False)]
    raise TypeError(
        f"Making a function: {what} has {pairs!r}; give a dictionary, or pairs, of a variable and its "
        "replacement"
    )
