"""Rewrites of one's own: a node rewriter, a pattern, and both on a graph until nothing changes."""

import engine as pytensor
import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.graph.rewriting.basic import (
    EquilibriumGraphRewriter,
    PatternNodeRewriter,
    in2out,
    node_rewriter,
)


@node_rewriter([pt.log])
def log_of_one_plus(fgraph, node):
    """log(1 + x) -> log1p(x)"""
    addition = node.inputs[0].owner
    if addition is None or addition.op != pt.add or len(addition.inputs) != 2:
        return None
    one, x = addition.inputs
    if getattr(one, "data", None) is None or one.data != 1:
        return None
    return [pt.log1p(x)]


exponential_is_positive = PatternNodeRewriter(
    (pt.abs, (pt.exp, "x")), (pt.exp, "x"), name="exponential_is_positive"
)

x = pt.dscalar("x")
out = pt.log(1.0 + pt.abs(pt.exp(x)))
graph = FunctionGraph([x], [out])
n_nodes_before = len(graph.apply_nodes)
EquilibriumGraphRewriter([log_of_one_plus, exponential_is_positive], max_use_ratio=10).rewrite(graph)
n_nodes_after = len(graph.apply_nodes)
_ops = [str(node.op) for node in graph.toposort()]
found_log1p = any("log1p" in op.lower() for op in _ops)
value = pytensor.function(graph.inputs, graph.outputs[0])(0.5)

y = pt.dscalar("y")
other = FunctionGraph([y], [pt.log(1.0 + y)])
in2out(log_of_one_plus, name="logs").rewrite(other)
n_nodes_of_other = len(other.apply_nodes)
