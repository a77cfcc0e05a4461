"""Constant folding: nodes with only constant inputs are computed once, by the reference.

It never reads data, and makes none: results of more than 32 elements are not folded. Neither are nodes that
raise (they raise when they run), draws of random numbers, loops and solvers (which may take long in the
reference), and user Ops: their results may depend on more than the inputs, so no entry may keep them. A
branch waits for the product or quotient that it is a part of: where(c, a, 0) * inf is 0 outside of c.
"""

from __future__ import annotations

import math

import numpy as np

from engine.graph import Apply, Constant, FunctionGraph, Output, Variable
from engine.graph.represented import RepresentedType
from engine.graph.user_ops import needs_python
from engine.inner.optimize_ops import SolverOp
from engine.inner.scan import Scan
from engine.rewriting.passes.arithmetic import sinks_branches
from engine.rewriting.rewriters import node_rewriter
from engine.rewriting.walking import in2out
from engine.tensor import AdvancedIncSubtensor, Alloc, IncSubtensor
from engine.tensor.matching import tensor_type_of
from engine.tensor.type import LARGEST_CONSTANT, is_data, tensor_type


@node_rewriter(None)
def constant_folding(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(constants) -> constant, but for a filled array that is a result, or of which a part is changed."""
    if not all(isinstance(variable, Constant) for variable in node.inputs):
        return None
    clients = fgraph.clients[node.outputs[0]]
    if isinstance(node.op, Alloc) and any(_needs_new_array(client, place) for client, place in clients):
        return None
    return None if any(sinks_branches(client) for client, _ in clients) else folded(node)


def _needs_new_array(client: Apply, place: int) -> bool:
    """Return True if an input would have to be copied if it were a constant."""
    return isinstance(client.op, Output) or (
        isinstance(client.op, IncSubtensor | AdvancedIncSubtensor) and not place
    )


def folded(node: Apply) -> list[Variable] | None:
    """Return the constants that the outputs of `node` are, if it has constants for inputs; otherwise None."""
    if isinstance(node.op, Scan | SolverOp) or needs_python(node.op):
        return None
    if any(isinstance(output.type, RepresentedType) for output in node.outputs):
        return None
    if not all(isinstance(variable, Constant) and not is_data(variable) for variable in node.inputs):
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


@node_rewriter(None)
def unconditional_constant_folding(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(constants) -> constant, whatever f(constants) is for."""
    return folded(node)


topo_constant_folding = in2out(constant_folding, ignore_newtrees=True, name="topo_constant_folding")
topo_unconditional_constant_folding = in2out(
    unconditional_constant_folding, ignore_newtrees=True, name="topo_unconditional_constant_folding"
)


def _known_size(variable: Variable) -> int:
    """Return the number of elements, or 0 if a length is unknown."""
    lengths = tensor_type_of(variable).shape
    return 0 if None in lengths else math.prod(n for n in lengths if n is not None)
