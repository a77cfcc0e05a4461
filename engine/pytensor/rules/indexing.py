"""Rules for indexing: by integers, slices, integer arrays and masks, read and changed."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    unflatten_index_variables,
)

import engine.tensor as pt
from engine.pytensor.representation import Untranslatable, known
from engine.pytensor.scope import Rule, Scope


def _index(op: Any, variables: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index, for the engine, that `op` makes of its index variables."""
    return tuple([_item(item) for item in unflatten_index_variables(variables, op.idx_list)])


def _item(item: Any) -> Any:
    """Return one item of an index, known integers as ints."""
    if isinstance(item, slice):
        return slice(*[None if part is None else _item(part) for part in (item.start, item.stop, item.step)])
    return item if getattr(item.type, "dtype", None) == "bool" else known(item)


def _subtensor(scope: Scope, node: Any, x: Any, *variables: Any) -> Any:
    return x[_index(node.op, variables)]


def _changed(scope: Scope, node: Any, x: Any, y: Any, *variables: Any) -> Any:
    op = node.op
    if getattr(op, "ignore_duplicates", False):
        raise Untranslatable("it ignores duplicates")
    part = x[_index(op, variables)]
    return part.set(pt.cast(y, x.type.dtype)) if op.set_instead_of_inc else part.inc(y)


RULES: dict[type, Rule] = {
    Subtensor: _subtensor,
    AdvancedSubtensor: _subtensor,
    IncSubtensor: _changed,
    AdvancedIncSubtensor: _changed,
}
