"""The rules by which PyTensor's Ops become the engine's: `rule_of` finds the one for an Op."""

from __future__ import annotations

from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import ScalarOp

from engine.pytensor.rules.blockwise import RULES as BLOCKWISE
from engine.pytensor.rules.checks import RULES as CHECKS
from engine.pytensor.rules.checks import check_and_raise
from engine.pytensor.rules.elementwise import RULES as ELEMENTWISE
from engine.pytensor.rules.elementwise import scalar
from engine.pytensor.rules.indexing import RULES as INDEXING
from engine.pytensor.rules.inner_graphs import inlined
from engine.pytensor.rules.linalg import RULES as LINALG
from engine.pytensor.rules.reduction import RULES as REDUCTION
from engine.pytensor.rules.scan import RULES as SCAN
from engine.pytensor.rules.shape import RULES as SHAPE
from engine.pytensor.rules.vectors import RULES as VECTORS
from engine.pytensor.scope import Rule

RULES: dict[type, Rule] = {
    **ELEMENTWISE,
    **REDUCTION,
    **SHAPE,
    **INDEXING,
    **LINALG,
    **BLOCKWISE,
    **CHECKS,
    **SCAN,
    **VECTORS,
}


def rule_of(op: Any) -> Rule | None:
    """Return the rule for `op`, or None if PyTensor computes it.

    A class has a rule of its own. Only the subclasses of a few that do what these do share one: a subclass
    may compute something else.
    """
    found = RULES.get(type(op))
    if found is None and isinstance(op, CheckAndRaise) and type(op).perform is CheckAndRaise.perform:
        return check_and_raise
    if found is None and isinstance(op, OpFromGraph) and type(op).perform is OpFromGraph.perform:
        return inlined
    return scalar if found is None and isinstance(op, ScalarOp) else found
