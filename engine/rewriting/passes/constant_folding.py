"""Constant folding: nodes with only constant inputs are computed once, by the reference.

It never reads data, and makes none: results of more than 32 elements are not folded. Neither are nodes that
raise (they raise when they run), draws of random numbers, loops and solvers (which may take long in the
reference), and user Ops: their results may depend on more than the inputs, so no entry may keep them. A
branch waits for the product or quotient that it is a part of: where(c, a, 0) * inf is 0 outside of c.
"""

from __future__ import annotations

import math

import numpy as np

from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.graph.represented import RepresentedType
from engine.graph.user_ops import needs_python
from engine.inner.optimize_ops import SolverOp
from engine.inner.scan import Scan
from engine.rewriting.passes.arithmetic import sinks_branches
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.matching import tensor_type_of
from engine.tensor.type import LARGEST_CONSTANT, is_data, tensor_type


@node_rewriter(None)
def constant_folding(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(constants) -> constant."""
    if isinstance(node.op, Scan | SolverOp) or needs_python(node.op):
        return None
    if any(isinstance(output.type, RepresentedType) for output in node.outputs):
        return None
    if not all(isinstance(variable, Constant) and not is_data(variable) for variable in node.inputs):
        return None
    if any(sinks_branches(client) for client, _ in fgraph.clients[node.outputs[0]]):
        return None
    if any(_known_size(output) > LARGEST_CONSTANT for output in node.outputs):
        return None
    storage: list[list[np.ndarray | None]] = [[None] for _ in node.outputs]
    try:
        with np.errstate(all="ignore"):
            node.op.perform(
                node, [variable.value for variable in node.inputs if isinstance(variable, Constant)], storage
            )
    except Exception:  # it raises again when the function runs
        return None
    values = [np.array(cell[0], order="C") for cell in storage]
    if any(value.size > LARGEST_CONSTANT for value in values):
        return None
    return [tensor_type(value.dtype.name, value.shape).make_constant(value) for value in values]


def _known_size(variable: Variable) -> int:
    """Return the number of elements, or 0 if a length is unknown."""
    lengths = tensor_type_of(variable).shape
    return 0 if None in lengths else math.prod(n for n in lengths if n is not None)
