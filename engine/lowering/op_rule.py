"""`OpRule`: the way a class of Ops is lowered, and the inputs that this reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import Struct

from engine.errors import LoweringError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.user_ops import is_user_op
from engine.graph.variables import Variable

ValueInputs = Callable[[Apply], Sequence[Variable]]


class OpRule(Struct, frozen=True):
    """The way a class of Ops is lowered.

    `lower` is called with the Lowering and one node. `reads` names the inputs whose values the node's
    kernels read, `lengths` those that the lengths of its outputs depend on. If it `reduces`, an
    elementwise computation that nothing else reads runs inside its loops. If an output is the first
    input without some first rows, `skipped` returns their number.
    """

    lower: Callable[[Any, Apply], None]
    reads: ValueInputs = lambda node: node.inputs
    lengths: ValueInputs = lambda node: ()
    reduces: bool = False
    skipped: Callable[[Apply], int | None] = lambda node: None


Rules = dict[type[Op], OpRule]
FindRule = Callable[[Apply], OpRule | None]


def rule_for(node: Apply, rule_of: FindRule) -> OpRule:
    """Return the rule for `node`; raises LoweringError if there is none."""
    found = rule_of(node)
    if found is None:
        advice = (
            "implement perform() for it, on tensors"
            if is_user_op(node.op)
            else "compile with mode='NUMPY' to run it in Python"
        )
        raise LoweringError(node.op, "numba", f"it has no kernel; {advice}")
    return found


def rules_for(nodes: Sequence[Apply], rule_of: FindRule) -> dict[Apply, OpRule]:
    """Return the rule for each of `nodes`; raises LoweringError if one has none."""
    return {node: rule_for(node, rule_of) for node in nodes}


def count_uses(rules: dict[Apply, OpRule], outputs: Collection[Variable]) -> dict[Variable, int]:
    """Return the number of reads of each variable's value: by needed kernels, for lengths, by the caller.

    `rules` has the nodes in the order in which they run.
    """
    uses: dict[Variable, int] = {}
    for variable in outputs:
        uses[variable] = uses.get(variable, 0) + 1
    for node, rule in reversed(rules.items()):
        is_needed = any(uses.get(output) for output in node.outputs)
        # A node whose outputs nobody reads may still be asked for its lengths.
        for variable in (*rule.lengths(node), *(rule.reads(node) if is_needed else ())):
            uses[variable] = uses.get(variable, 0) + 1
    return uses
