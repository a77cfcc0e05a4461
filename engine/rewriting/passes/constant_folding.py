"""Constant folding: nodes with only constant inputs become constants (engine/inner/folding.py).

A branch waits for the product or quotient that it is a part of: where(c, a, 0) * inf is 0 outside of c.
"""

from __future__ import annotations

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Output, Variable
from engine.inner.folding import folded
from engine.rewriting.passes.arithmetic import sinks_branches
from engine.rewriting.rewriters import node_rewriter
from engine.rewriting.walking import in2out
from engine.tensor import AdvancedIncSubtensor, Alloc, IncSubtensor
from engine.tensor.elemwise import elemwise


@node_rewriter(None)
def constant_folding(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(constants) -> constant, but for a filled array that is a result, or of which a part is changed."""
    if not all(isinstance(variable, Constant) for variable in node.inputs):
        return None
    clients = fgraph.clients[node.outputs[0]]
    if isinstance(node.op, Alloc) and any(_needs_new_array(client, place) for client, place in clients):
        return None
    waits = node.op == elemwise(scalar.where) and any(sinks_branches(client) for client, _ in clients)
    return None if waits else folded(node)


def _needs_new_array(client: Apply, place: int) -> bool:
    """Return True if an input would have to be copied if it were a constant."""
    return isinstance(client.op, Output) or (
        isinstance(client.op, IncSubtensor | AdvancedIncSubtensor) and not place
    )


@node_rewriter(None)
def unconditional_constant_folding(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(constants) -> constant, whatever f(constants) is for."""
    return folded(node)


topo_constant_folding = in2out(constant_folding, ignore_newtrees=True, name="topo_constant_folding")
topo_unconditional_constant_folding = in2out(
    unconditional_constant_folding, ignore_newtrees=True, name="topo_unconditional_constant_folding"
)
