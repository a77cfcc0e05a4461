"""The rules by which Ops are lowered: `RULES` has one for each class of Ops. Of the others, Python computes
each node (callbacks.py).
"""

from engine.graph.apply import Apply
from engine.inner.batch_loop import BatchLoop
from engine.inner.from_graph import OpFromGraph
from engine.inner.scan import Scan
from engine.lowering.lower import dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.rules.advanced_indexing import RULES as ADVANCED_INDEXING
from engine.lowering.rules.alloc import RULES as ALLOC
from engine.lowering.rules.along import RULES as ALONG
from engine.lowering.rules.callbacks import RULES as CALLBACKS
from engine.lowering.rules.callbacks import python_rule
from engine.lowering.rules.checks import RULES as CHECKS
from engine.lowering.rules.eigen import RULES as EIGEN
from engine.lowering.rules.eigen import is_of_pair
from engine.lowering.rules.elementwise import RULES as ELEMENTWISE
from engine.lowering.rules.linalg import RULES as LINALG
from engine.lowering.rules.reduction import RULES as REDUCTION
from engine.lowering.rules.scan import scan_rule
from engine.lowering.rules.shape import RULES as SHAPE
from engine.lowering.rules.slicing import RULES as SLICING
from engine.lowering.rules.vectors import RULES as VECTORS
from engine.lowering.rules.vectors import has_rows
from engine.scalar.embedded import has_compiled_dtypes, has_loops
from engine.scalar.op import ScalarOp
from engine.tensor.checks import Assert, CheckAndRaise, SpecifyShape
from engine.tensor.copying import CpuContiguous
from engine.tensor.creation import Alloc
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.joining import Join
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.shape import MakeVector, Reshape, Shape_i
from engine.tensor.single_numbers import ScalarFromTensor, TensorFromScalar
from engine.tensor.slicing import IncSubtensor, Subtensor
from engine.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor

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
    **CHECKS,
    **VECTORS,
    **EIGEN,
}


MOVING = (
    *(DimShuffle, Reshape, Shape_i, MakeVector, Join, Alloc, Subtensor, AdvancedSubtensor),
    *(OpFromGraph, Scan, BatchLoop, CheckAndRaise, Assert, SpecifyShape),
    *(CpuContiguous, ScalarFromTensor, TensorFromScalar),
)
"""The Ops that only move elements, or hold graphs: kernels do so for all dtypes."""


def rule_of(node: Apply) -> OpRule | None:
    """Return the rule by which `node` is lowered, or None if there is none."""
    by_python = has_rows(node) or is_of_pair(node) or not _is_compiled(node) or _is_replaced(node)
    kind = Elemwise if isinstance(node.op, ScalarOp) else type(node.op)
    return (None if by_python else RULES.get(kind)) or python_rule(node)


def _is_compiled(node: Apply) -> bool:
    """Return True if kernels compute with the dtypes of `node`, or move its elements."""
    if type(node.op) is Elemwise:
        return has_loops(node)
    return type(node.op) in MOVING or has_compiled_dtypes(node) or _sets(node)


def _is_replaced(node: Apply) -> bool:
    """Return True if a rewrite would have replaced `node`: a mode without rewrites leaves it."""
    return isinstance(node.op, ReplacedOp) and node.op.is_replaced(node.inputs)


def _sets(node: Apply) -> bool:
    """Return True if `node` sets a part of a tensor to elements of its own dtype."""
    is_set = isinstance(node.op, IncSubtensor | AdvancedIncSubtensor) and node.op.set_instead_of_inc
    return is_set and dtype(node.inputs[0]) == dtype(node.inputs[1])


RULES[Scan] = RULES[BatchLoop] = scan_rule(rule_of)
