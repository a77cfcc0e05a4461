"""Updates of shared variables: those that are asked for, and the default ones of what a function comes
to use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from engine.graph.replace import clone_replace
from engine.graph.traversal import graph_inputs
from engine.graph.variables import Variable
from engine.shared import as_update
from engine.tensor.conversion import as_tensor_variable

Pairs = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


class Expressions:
    """What a function computes: `outputs`, and in `updates` what replaces the value of a shared
    variable; `givens` are replaced in all of it.

    `shared` are the shared variables that it needs, in the order of the graph's structure, and those
    that it updates. Variables of `inputs` have their values from the caller: what computes them is not
    needed. Refuses (TypeError, ValueError) updates of what is not shared, of other types than their
    variables, or given twice.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        updates: Pairs | None,
        givens: Pairs | None,
        no_default_updates: bool | list[Any],
    ) -> None:
        self._inputs = inputs
        self._givens = _replacements(givens)
        self._is_excluded = _exclusion(no_default_updates)
        given = _checked(updates)
        replaced = self._replaced([*outputs, *given.values()])
        self.outputs = replaced[: len(outputs)]
        self.updates: dict[Any, Variable] = dict(zip(given, replaced[len(outputs) :], strict=True))
        self.shared: list[Any] = []
        self._reach(replaced)
        self.shared = list(dict.fromkeys([*self.shared, *self.updates]))

    def _replaced(self, expressions: list[Variable]) -> list[Variable]:
        return clone_replace(expressions, self._givens) if self._givens else expressions

    def _reach(self, expressions: Sequence[Variable]) -> None:
        """Note what is shared of what `expressions` need, and have updated by default what is, and so on."""
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
    """Tells of a shared variable whether its default update is not wanted."""
    if isinstance(no_default_updates, bool):
        return lambda variable: no_default_updates
    if isinstance(no_default_updates, list):
        return lambda variable: any(variable is excluded for excluded in no_default_updates)
    raise TypeError(
        f"Making a function: no_default_updates is {no_default_updates!r}; it must be True, False or a list of shared "
        "variables"
    )


def _replacements(givens: Pairs | None) -> list[tuple[Variable, Variable]]:
    pairs = _as_pairs("givens", givens)
    return [(old, old.type.filter_variable(as_tensor_variable(new))) for old, new in pairs]


def _checked(updates: Pairs | None) -> dict[Any, Variable]:
    checked: dict[Any, Variable] = {}
    for shared, value in _as_pairs("updates", updates):
        if not hasattr(shared, "container"):
            raise TypeError(f"Making a function: {shared!r} is updated; only a shared variable can be")
        if shared in checked:
            raise ValueError(f"Making a function: shared variable {shared} is updated twice")
        checked[shared] = as_update(shared, value, "Making a function")
    return checked


def _as_pairs(what: str, given: Pairs | None) -> Collection[tuple[Any, Any]]:
    """The pairs in `given`; refuses (TypeError) what is no mapping and has no pairs that begin with a
    variable."""
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
        f"Making a function: {what} has {pairs!r}; give a dictionary, or pairs, of a variable and what is to be "
        "used instead"
    )
