"""The rules by which Ops are lowered: `RULES` has one for each class of Ops. Of the others, Python computes
each node (callbacks.py).
"""

from engine.graph.apply import Apply
from engine.inner.scan import Scan
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.rules.advanced_indexing import RULES as ADVANCED_INDEXING
from engine.lowering.rules.alloc import RULES as ALLOC
from engine.lowering.rules.along import RULES as ALONG
from engine.lowering.rules.callbacks import RULES as CALLBACKS
from engine.lowering.rules.callbacks import python_rule
from engine.lowering.rules.elementwise import RULES as ELEMENTWISE
from engine.lowering.rules.linalg import RULES as LINALG
from engine.lowering.rules.reduction import RULES as REDUCTION
from engine.lowering.rules.scan import scan_rule
from engine.lowering.rules.shape import RULES as SHAPE
from engine.lowering.rules.slicing import RULES as SLICING
from engine.scalar.embedded import has_loops
from engine.tensor.elemwise import Elemwise

RULES: Rules = {
    **ELEMENTWISE,
    **REDUCTION,
    **SHAPE,
    **LINALG,
    **SLICING,
    **ADVANCED_INDEXING,
    **ALONG,
    **ALLOC,
    **CALLBACKS,
}


def rule_of(node: Apply) -> OpRule | None:
    """Return the rule by which `node` is lowered, or None if there is none."""
    by_python = type(node.op) is Elemwise and not has_loops(node)
    found = None if by_python else RULES.get(type(node.op))
    return found or python_rule(node)


RULES[Scan] = scan_rule(rule_of)
