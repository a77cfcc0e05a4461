"""What a reduction shares with elementwise operations is computed for it once more, where that costs less than storing it.

In `m = x - a; sum(exp(m)); m - b` fusion would store `m` for both: a value that a reduction's loop reads cannot leave it.
A copy of `m` for the sum lets both compute it where they use it.
"""

from __future__ import annotations

from engine import scalar
from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.variables import Variable
from engine.rewriting.passes.fusion import fit_one_loop
from engine.rewriting.report import RewriteReport
from engine.rewriting.rewriters import GraphRewriter
from engine.tensor.elemwise import Elemwise
from engine.tensor.reduction import Reduction

CHEAP = (scalar.add, scalar.sub, scalar.mul, scalar.neg, scalar.sqr, scalar.maximum, scalar.minimum)
"""Operations that take no longer than reading an element."""


class RecomputeForReductions(GraphRewriter):
    """Gives what is computed for one reduction alone its own copy of the cheap operations that it shares."""

    name = "recompute_for_reductions"

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        for reduction in fgraph.toposort():
            if isinstance(reduction.op, Reduction):
                for consumer in _computed_for(fgraph, reduction):
                    _separate(fgraph, consumer, report)


def _computed_for(fgraph: FunctionGraph, reduction: Apply) -> list[Apply]:
    """The elementwise nodes that are computed in the loop of `reduction` and for nothing else."""
    found: list[Apply] = []
    waiting = [reduction.inputs[0]]
    while waiting:
        variable = waiting.pop()
        node = variable.owner
        if node is None or not isinstance(node.op, Elemwise) or len(fgraph.clients[variable]) != 1:
            continue
        if not found or fit_one_loop(node, found[0]):
            found.append(node)
            waiting += node.inputs
    return found


def _separate(fgraph: FunctionGraph, consumer: Apply, report: RewriteReport) -> None:
    for position, variable in enumerate(consumer.inputs):
        producer = variable.owner
        if producer is not None and _is_cheaper_twice(fgraph, producer, consumer, variable):
            copy = producer.clone_with_new_inputs(producer.inputs).outputs[0]
            fgraph.change_node_input(consumer, position, copy, RecomputeForReductions.name)
            report.count(RecomputeForReductions.name)


def _is_cheaper_twice(fgraph: FunctionGraph, producer: Apply, consumer: Apply, shared: Variable) -> bool:
    """Whether all that use `shared` can compute it themselves, from what is stored anyway."""
    if not isinstance(producer.op, Elemwise) or producer.op.scalar_op not in CHEAP:
        return False
    clients = [client for client, _ in fgraph.clients[shared]]
    if len(clients) < 2 or not all(isinstance(c, Apply) and fit_one_loop(producer, c) for c in clients):
        return False
    return not any(v.owner is not None and fit_one_loop(v.owner, producer) for v in producer.inputs)
