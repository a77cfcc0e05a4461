"""How each family of Ops is lowered. `RULES` maps a class of Ops to its rule; what only Python can compute has one, too."""

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.user_ops import needs_python
from engine.inner.scan import Scan
from engine.lowering.op_rule import OpRule
from engine.lowering.rules.alloc import RULES as ALLOC
from engine.lowering.rules.along import RULES as ALONG
from engine.lowering.rules.elementwise import RULES as ELEMENTWISE
from engine.lowering.rules.joining import RULES as JOINING
from engine.lowering.rules.linalg import RULES as LINALG
from engine.lowering.rules.linear import RULES as LINEAR
from engine.lowering.rules.masks import RULES as MASKS
from engine.lowering.rules.optimize import RULES as OPTIMIZE
from engine.lowering.rules.perform import python_rule
from engine.lowering.rules.reduction import RULES as REDUCTION
from engine.lowering.rules.scan import scan_rule
from engine.lowering.rules.shape import RULES as SHAPE
from engine.lowering.rules.slicing import RULES as SLICING
from engine.lowering.rules.sort import RULES as SORT
from engine.lowering.rules.subtensor import RULES as SUBTENSOR
from engine.scalar.embedded import has_loops
from engine.tensor.elemwise import Elemwise

RULES: dict[type[Op], OpRule] = {
    **ELEMENTWISE,
    **REDUCTION,
    **SHAPE,
    **LINEAR,
    **LINALG,
    **SLICING,
    **SUBTENSOR,
    **JOINING,
    **ALONG,
    **SORT,
    **MASKS,
    **ALLOC,
    **OPTIMIZE,
}


def rule_of(node: Apply) -> OpRule | None:
    """The rule by which `node` is lowered; None if there is none."""
    by_python = type(node.op) is Elemwise and not has_loops(node)
    found = None if by_python else RULES.get(type(node.op))
    return found or (python_rule(node) if needs_python(node.op) else None)


RULES[Scan] = scan_rule(rule_of)
