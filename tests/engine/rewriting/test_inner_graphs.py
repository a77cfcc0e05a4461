"""Inner graphs: rewritten like the graph around, once for equal Ops, and never the user's own object."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import FunctionGraph, ancestors
from engine.graph.reference import evaluate
from engine.inner import Composite, OpFromGraph
from engine.inner.einsum import Einsum
from engine.rewriting import DEFAULT_QUERY, dfs_rewriter, node_rewriter, optdb, rewrite_graph, run_pipeline
from engine.rewriting.database import SequenceDB
from engine.rewriting.equilibrium import EquilibriumGraphRewriter
from engine.rewriting.inner_graphs import InnerGraphs, OptimizeInnerGraphs, inline_ofg_expansion
from engine.rewriting.rewriters import RewriteReport, SequentialGraphRewriter
from engine.tensor import Elemwise
from engine.tensor.products import Dot


def layer(**options):
    x = pt.dvector("x")
    return OpFromGraph([x], [pt.exp(x * 1) + 0 + pt.exp(x)], **options)


def graph(inputs, outputs):
    return FunctionGraph(inputs, outputs)


def ops_of(fgraph):
    return [node.op for node in fgraph.toposort()]


def assert_same_values(fgraph, inputs, outputs, *values):
    for found, due in zip(
        evaluate(fgraph.inputs, fgraph.outputs, values), evaluate(inputs, outputs, values), strict=True
    ):
        np.testing.assert_allclose(found, due)


class Kept:
    """A store of graphs in memory."""

    def __init__(self):
        self.graphs = {}
        self.asked = []

    def find(self, graph):
        self.asked.append(graph)
        return self.graphs.get(graph)

    def keep(self, graph, optimized, seconds):
        assert seconds > 0
        self.graphs[graph] = optimized


def test_the_graph_within_is_rewritten_and_the_given_op_is_not():
    x = pt.dvector("x")
    op = layer()
    before = op.fgraph
    fgraph = graph([x], [op(x)])
    run_pipeline(fgraph)
    (found,) = ops_of(fgraph)
    assert op.fgraph is before
    assert len(before.nodes) == 5
    (node,) = found.fgraph.nodes
    assert isinstance(node.op, Elemwise)
    assert isinstance(node.op.scalar_op, Composite)
    assert_same_values(fgraph, [x], [op(x)], [0.5, 1.0])


def test_equal_ops_are_rewritten_once():
    x = pt.dvector("x")
    h = x
    for _ in range(5):
        h = layer()(h)
    fgraph = graph([x], [h])
    report = run_pipeline(fgraph)
    assert report.applied["optimize_inner_graphs"] == 1
    assert len(set(ops_of(fgraph))) == 1
    assert_same_values(fgraph, [x], [h], [-3.0])


def test_ops_that_differ_by_name_or_gradient_alone_are_one_after_it():
    x = pt.dvector("x")
    fgraph = graph([x], [layer()(x), layer(name="other")(x), layer(pullback=lambda *_: [None])(x)])
    report = run_pipeline(fgraph)
    assert report.applied["optimize_inner_graphs"] == 1
    assert len(fgraph.apply_nodes) == 1


def test_graphs_within_graphs_are_rewritten():
    x = pt.dvector("x")
    outer = OpFromGraph([x], [layer()(layer()(x)) * 1])
    fgraph = graph([x], [outer(x)])
    report = run_pipeline(fgraph)
    (found,) = ops_of(fgraph)
    within = [node.op for node in found.fgraph.nodes]
    assert report.applied["optimize_inner_graphs"] == 2
    assert len(within) == 2
    assert len(set(within)) == 1
    assert len(within[0].fgraph.nodes) == 1
    assert_same_values(fgraph, [x], [outer(x)], [-3.0])


def test_an_op_that_asks_for_it_is_inlined_before_all_else():
    x = pt.dvector("x")
    outer = OpFromGraph([x], [layer(inline=True)(layer()(x)) * 1], inline=True)
    fgraph = graph([x], [outer(x)])
    report = run_pipeline(fgraph)
    assert report.applied["inline_graphs"] == 2
    assert [type(op) for op in ops_of(fgraph)] == [OpFromGraph, Elemwise]
    assert_same_values(fgraph, [x], [outer(x)], [-3.0])


def test_a_query_without_it_leaves_graphs_as_they_are():
    x = pt.dvector("x")
    fgraph = graph([x], [layer()(x)])
    run_pipeline(fgraph, DEFAULT_QUERY.excluding("optimize_inner_graphs"))
    assert ops_of(fgraph) == [layer()]
    OptimizeInnerGraphs().rewrite(fgraph)
    assert ops_of(fgraph) == [layer()]


def test_what_is_kept_is_not_rewritten_again():
    x = pt.dvector("x")
    kept = Kept()
    first, second = graph([x], [layer()(x)]), graph([x], [layer()(layer(name="other")(x))])
    run_pipeline(first, graphs=kept)
    report = run_pipeline(second, graphs=kept)
    assert "optimize_inner_graphs" not in report.applied
    assert kept.asked == [layer().fgraph, layer().fgraph]
    assert set(ops_of(second)) == set(ops_of(first))


class Softmax(OpFromGraph):
    """An Op that a rewrite below recognizes, with its inner graph."""


def softmax(x):
    shifted = pt.exp(x)
    return shifted / pt.sum(shifted)


def recognise(op, replaced):
    """Return a rewrite that replaces the quotient in a graph like that of `op` by `op` of its input."""

    @node_rewriter([Elemwise])
    def recognised(fgraph, node):
        exp = node.inputs[0].owner
        if len(node.inputs) != 2 or exp is None or str(exp.op) != "exp" or node.inputs[1].owner is None:
            return None
        replaced.append(node)
        return [op(exp.inputs[0])]

    return recognised


def test_an_op_recognised_outside_is_not_recognised_within_itself():
    x = pt.dvector("x")
    op = Softmax([x], [softmax(x)])
    replaced = []
    equilibrium = EquilibriumGraphRewriter([recognise(op, replaced)])
    rewriter = SequentialGraphRewriter(equilibrium, OptimizeInnerGraphs())
    kept = Kept()
    fgraph = graph([x], [softmax(x) * 2])
    fgraph.attach_feature(InnerGraphs(rewriter, kept))
    rewriter.run(fgraph, RewriteReport())
    assert len(replaced) == 2
    found, _ = ops_of(fgraph)
    assert isinstance(found, OpFromGraph)
    assert not any(isinstance(node.op, OpFromGraph) for node in found.fgraph.nodes)
    assert found.fgraph is op.fgraph
    assert list(kept.graphs) == [op.fgraph]
    assert_same_values(fgraph, [x], [softmax(x) * 2], [0.5, 1.0])


def test_two_ops_recognised_within_each_other_end_and_only_what_stands_alone_is_kept():
    x = pt.dvector("x")
    first, second = OpFromGraph([x], [pt.exp(x)]), OpFromGraph([x], [pt.tanh(x)])

    @node_rewriter([Elemwise])
    def swapped(fgraph, node):
        found = {"exp": second, "tanh": first}.get(str(node.op))
        return None if found is None else [found(node.inputs[0])]

    rewriter = SequentialGraphRewriter(EquilibriumGraphRewriter([swapped]), OptimizeInnerGraphs())
    kept = Kept()
    fgraph = graph([x], [first(x)])
    fgraph.attach_feature(InnerGraphs(rewriter, kept))
    rewriter.run(fgraph, RewriteReport())
    assert list(kept.graphs) == [first.fgraph]


def test_its_name_is_in_the_description_of_the_pipeline():
    assert isinstance(optdb, SequenceDB)
    names = [row[0] for row in optdb.describe(DEFAULT_QUERY)]
    assert names.index("inline_graphs") == 0
    assert names.index("optimize_inner_graphs") < names.index("merge_last") < names.index("fusion")


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_applied_within_is_counted_once(count):
    x = pt.dvector("x")
    h = x
    for _ in range(count):
        h = layer()(h)
    report = run_pipeline(graph([x], [h]))
    assert report.applied["fusion"] == 1
    assert report.total == sum(report.applied.values())


def test_graphs_that_ask_for_it_are_inlined_by_name():
    x = pt.dvector("x")
    found = [OpFromGraph([x], [pt.exp(x)], inline=inline)(x) for inline in (True, False)]
    fgraph = FunctionGraph([x], found)
    dfs_rewriter(inline_ofg_expansion).rewrite(fgraph)
    assert [type(output.owner.op) for output in fgraph.outputs] == [Elemwise, OpFromGraph]


def test_a_sum_of_products_is_inlined_if_no_other_order_needs_fewer_operations():
    x, y, z = (pt.dmatrix(name) for name in "xyz")
    known = [pt.specify_shape(v, shape) for v, shape in zip((x, y, z), ((2, 3), (2, 3), (3, 5)), strict=True)]
    text = "ij,ij,jk->ik"
    unknown = rewrite_graph(pt.einsum(text, x, y, z), include=("specialize",))
    assert isinstance(unknown.owner.op, Einsum)
    later = pt.einsum(text, x, y, z).owner.clone_with_new_inputs(known).outputs[0]
    found = rewrite_graph(later, include=("specialize",))
    assert not any(isinstance(v.owner.op, Einsum) for v in ancestors([found]) if v.owner)
    values = {x: np.arange(6.0).reshape(2, 3), y: np.ones((2, 3)), z: np.arange(15.0).reshape(3, 5)}
    np.testing.assert_allclose(found.eval(values), np.einsum(text, *values.values()))


def test_a_diagonal_of_a_sum_of_products_computes_nothing_beside_it():
    x, y = pt.tensor("x", shape=(6, 4)), pt.tensor("y", shape=(4, 6))
    f = engine.function([x, y], pt.diagonal(pt.einsum("ij,jk->ik", x, y)))
    assert not any(isinstance(node.op, Dot) for node in f.maker.fgraph.apply_nodes)
    values = np.arange(24.0).reshape(6, 4), np.ones((4, 6))
    np.testing.assert_allclose(f(*values), np.diagonal(values[0] @ values[1]))
