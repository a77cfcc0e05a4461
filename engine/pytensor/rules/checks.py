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
    pairs = zip(branches[:count], branches[count:], strict=True)
    return [_chosen(pt.cast(condition, "bool"), yes, no) for yes, no in pairs]


def _chosen(condition: Any, yes: Any, no: Any) -> Any:
    """Return `yes` or `no`, which may differ in shape: a part of both, joined, in the shape of that one."""
    if yes.type.ndim == 0:
        return pt.switch(condition, yes, no)
    lengths = [
        pt.switch(condition, pt.shape_i(yes, axis), pt.shape_i(no, axis)) for axis in range(yes.type.ndim)
    ]
    first = pt.flatten(yes)
    both = pt.concatenate([first, pt.flatten(no)])
    size = pt.shape_i(first, 0)
    start, stop = pt.switch(condition, 0, size), pt.switch(condition, size, pt.shape_i(both, 0))
    return pt.reshape(both[start:stop], tuple(lengths))


RULES: dict[type, Rule] = {CheckAndRaise: check_and_raise, Assert: check_and_raise, IfElse: _if_else}
