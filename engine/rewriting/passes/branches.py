"""Products and quotients of a branch that is 0 outside: the result is 0 there, whatever the other factor.

So `switch(inside, 1, 0) * log(x)`, and gradients of it, are 0 where the logarithm is infinite or NaN, as in
PyTensor.
"""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.pattern import apply_scalar
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor.elemwise import elemwise, split, within
from engine.tensor.matching import dtype_of


@node_rewriter([elemwise(scalar.mul)])
def local_mul_branch(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """where(c, a, 0) * b -> where(c, a * b, 0), of floats."""
    branches, found = split(node.outputs[0])
    return _typed(node, within(branches, found)) if branches and _are_floats(node) else None


@node_rewriter([elemwise(scalar.true_div)])
def local_div_branch(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """where(c, a, 0) / b -> where(c, a / b, 0), of floats."""
    branches, found = split(node.inputs[0])
    if not branches or not _are_floats(node):
        return None
    return _typed(node, within(branches, apply_scalar(scalar.true_div, found, node.inputs[1])))


def _are_floats(node: Apply) -> bool:
    dtype = dtype_of(node.outputs[0])
    return dtype in FLOATS and all(dtype_of(variable) == dtype for variable in node.inputs)


def _typed(node: Apply, found: Variable) -> list[Variable] | None:
    return [found] if node.outputs[0].type.is_super(found.type) else None
