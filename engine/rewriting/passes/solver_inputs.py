"""Parameters of solvers that need not be inputs: constants, and what is given twice."""

from __future__ import annotations

from typing import Any

from engine.graph import Apply, Constant, FrozenFunctionGraph, FunctionGraph, Variable
from engine.inner.optimize_ops import ScipyWrapperOp
from engine.rewriting.rewriters import node_rewriter
from engine.tensor.type import is_data


@node_rewriter([ScipyWrapperOp])
def remove_constants_and_duplicate_inputs_scipy(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """minimize of f(x, 2, a, a) -> minimize of g(x, a), in which 2 is a part of the objective.

    Limits stay inputs, as does large data, whose values are in no key.
    """
    op = node.op
    assert isinstance(op, ScipyWrapperOp)
    fresh = [nominal.type.make_variable() for nominal in op.inner_inputs]
    given: list[Variable] = [fresh[0]]
    kept: dict[Any, Variable] = {}
    for outer, inner in zip(node.inputs[1 : len(fresh)], fresh[1:], strict=True):
        is_part = isinstance(outer, Constant) and not is_data(outer) and inner.type == outer.type
        given.append(outer if is_part else kept.setdefault((outer, inner.type), inner))
    if len(kept) == len(fresh) - 1:
        return None
    graph = FrozenFunctionGraph.from_io([fresh[0], *kept.values()], op.fgraph.bind(given))
    parameters = [outer for outer, _ in kept]
    new = op.holding(graph).make_node(node.inputs[0], *parameters, *node.inputs[len(fresh) :])
    return list(new.outputs)
