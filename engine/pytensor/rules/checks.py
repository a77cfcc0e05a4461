"""Rules for Ops that raise an exception unless conditions hold, and for the choice of a branch."""

from __future__ import annotations

from typing import Any

from pytensor.conditional.op import IfElse
from pytensor.raise_op import Assert, CheckAndRaise

import engine.tensor as pt
from engine.pytensor.scope import Rule, Scope, all_of


def check_and_raise(scope: Scope, node: Any, value: Any, *conditions: Any) -> Any:
    """Return the value; the conditions are checked when the function runs."""
    if conditions:
        found = all_of([pt.cast(condition, "bool") for condition in conditions])
        scope.require(found, node.op.exc_type, node.op.msg)
    return value


def _if_else(scope: Scope, node: Any, condition: Any, *branches: Any) -> list[Any]:
    count = node.op.n_outs
    return pt.ifelse(condition, list(branches[:count]), list(branches[count:]))


RULES: dict[type, Rule] = {CheckAndRaise: check_and_raise, Assert: check_and_raise, IfElse: _if_else}
