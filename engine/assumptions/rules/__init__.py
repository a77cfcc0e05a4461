"""The rules by which properties of matrices are found, by property and class of Op."""

from __future__ import annotations

from engine.assumptions.core import AssumptionKey
from engine.assumptions.rules import constructors, decompositions, elementwise, products, views, writes
from engine.assumptions.rules.rule import Rule, RuleTable
from engine.graph.apply import Apply

_RULES: RuleTable = {
    **constructors.RULES,
    **decompositions.RULES,
    **elementwise.RULES,
    **products.RULES,
    **views.RULES,
    **writes.RULES,
}


def rule_of(node: Apply, key: AssumptionKey) -> Rule | None:
    """Return the rule for the property `key` of the outputs of `node`, or of each place of a batch."""
    op = getattr(node.op, "core_op", node.op)
    return next((_RULES[key, cls] for cls in type(op).__mro__ if (key, cls) in _RULES), None)
