import pytest

import engine.tensor as pt
from engine import scalar
from engine.graph import FunctionGraph
from engine.rewriting import (
    EquilibriumGraphRewriter,
    RewriteReport,
    SequentialGraphRewriter,
    node_rewriter,
)
from engine.rewriting.elementwise_pattern import ElementwisePattern
from engine.tensor import Elemwise

SIN, COS, EXP = Elemwise(scalar.sin), Elemwise(scalar.cos), Elemwise(scalar.exp)


@node_rewriter([SIN])
def sin_to_cos(fgraph, node):
    return [pt.cos(node.inputs[0])]


@node_rewriter([COS])
def cos_to_exp(fgraph, node):
    return [pt.exp(node.inputs[0])]


@node_rewriter([COS])
def cos_to_sin(fgraph, node):
    return [pt.sin(node.inputs[0])]


@node_rewriter([EXP])
def exp_of_exp(fgraph, node):
    inner = node.inputs[0].owner
    return None if inner is None or inner.op != EXP else [node.inputs[0]]


def chain(function, length):
    x = y = pt.dvector("x")
    for _ in range(length):
        y = function(y)
    return FunctionGraph([x], [y])


def names(fgraph):
    return [node.op.scalar_op.name for node in fgraph.toposort()]


def test_rewrites_are_applied_until_none_applies_and_counted_exactly():
    fgraph = chain(pt.sin, 3)
    report = EquilibriumGraphRewriter([sin_to_cos, cos_to_exp, exp_of_exp]).rewrite(fgraph)
    assert names(fgraph) == ["exp"]
    assert report.applied == {"sin_to_cos": 3, "cos_to_exp": 3, "exp_of_exp": 2}
    assert report.total == 8


def test_a_graph_that_needs_nothing_counts_nothing():
    fgraph = chain(pt.exp, 1)
    report = EquilibriumGraphRewriter([sin_to_cos, exp_of_exp]).rewrite(fgraph)
    assert report.applied == {}
    assert report.total == 0


def test_only_nodes_of_tracked_ops_are_looked_at():
    looked_at = []

    @node_rewriter([SIN])
    def look(fgraph, node):
        looked_at.append(node.op)

    EquilibriumGraphRewriter([look]).rewrite(FunctionGraph(outputs=[pt.sin(pt.exp(pt.dvector()))]))
    assert looked_at == [SIN]


def test_a_class_of_ops_and_all_ops_can_be_tracked():
    seen = []

    @node_rewriter([Elemwise])
    def of_class(fgraph, node):
        seen.append("class")

    @node_rewriter(None)
    def of_all(fgraph, node):
        seen.append("all")

    EquilibriumGraphRewriter([of_class, of_all]).rewrite(
        FunctionGraph(outputs=[pt.sum(pt.exp(pt.dvector()))])
    )
    assert seen == ["class", "all", "all"]


def test_a_node_is_looked_at_once_in_a_graph_that_does_not_change():
    count = 0

    @node_rewriter(None)
    def look(fgraph, node):
        nonlocal count
        count += 1

    EquilibriumGraphRewriter([look]).rewrite(chain(pt.sin, 2000))
    assert count == 2000


def test_what_a_rewrite_built_is_looked_at_again_when_what_it_is_built_on_changes():
    @node_rewriter([Elemwise(scalar.tanh)])
    def unfold(fgraph, node):
        return [abs(-pt.sin(node.inputs[0]))]

    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.tanh(x)])
    fold = ElementwisePattern("fold", (scalar.abs, (scalar.neg, (scalar.exp, "x"))), (scalar.sqr, "x"))
    report = EquilibriumGraphRewriter([unfold, sin_to_cos, cos_to_exp, fold]).rewrite(fgraph)
    assert report.applied == {"unfold": 1, "sin_to_cos": 1, "cos_to_exp": 1, "fold": 1}
    assert names(fgraph) == ["sqr"]


def test_rewrites_that_undo_each_other_are_stopped_with_a_warning():
    fgraph = chain(pt.sin, 4)
    with pytest.warns(RuntimeWarning, match="undo each other"):
        EquilibriumGraphRewriter([sin_to_cos, cos_to_sin]).rewrite(fgraph)
    fgraph.check_integrity()


def test_each_rewrite_has_a_limit_of_its_own():
    @node_rewriter([EXP])
    def exp_to_log(fgraph, node):
        return [pt.log(node.inputs[0])]

    fgraph = chain(pt.sin, 1)
    report = EquilibriumGraphRewriter([sin_to_cos, cos_to_exp, exp_to_log], max_use_ratio=1).rewrite(fgraph)
    assert names(fgraph) == ["log"]
    assert report.applied == {"sin_to_cos": 1, "cos_to_exp": 1, "exp_to_log": 1}


def test_a_rewrite_that_is_applied_too_often_is_stopped_and_named():
    fgraph = chain(pt.sin, 1)
    with pytest.warns(RuntimeWarning, match="stopped at sin_to_cos, after 2 applications per node"):
        report = EquilibriumGraphRewriter([sin_to_cos, cos_to_sin], max_use_ratio=2).rewrite(fgraph)
    assert report.applied == {"sin_to_cos": 3, "cos_to_sin": 2}
    assert names(fgraph) == ["cos"]


def test_a_graph_that_grows_allows_more():
    @node_rewriter([Elemwise(scalar.tanh)])
    def unroll(fgraph, node):
        inner = node.inputs[0]
        return [pt.sin(inner if len(fgraph.apply_nodes) > 5 else pt.tanh(inner))]

    fgraph = chain(pt.tanh, 1)
    EquilibriumGraphRewriter([unroll], max_use_ratio=1).rewrite(fgraph)
    assert names(fgraph) == ["sin"] * 6


def test_a_rewrite_without_end_is_stopped():
    @node_rewriter([SIN])
    def grow(fgraph, node):
        return [pt.exp(pt.sin(node.inputs[0]))]

    fgraph = chain(pt.sin, 2)
    with pytest.warns(RuntimeWarning, match="stopped at grow"):
        report = EquilibriumGraphRewriter([grow], max_use_ratio=3).rewrite(fgraph)
    assert report.applied == {"grow": 36}
    fgraph.check_integrity()


def test_another_number_of_replacements_is_refused():
    @node_rewriter([SIN])
    def two(fgraph, node):
        return [node.inputs[0], node.inputs[0]]

    with pytest.raises(ValueError, match="1 outputs need 1 replacements, 2 were given"):
        EquilibriumGraphRewriter([two]).rewrite(chain(pt.sin, 1))


def test_a_replacement_of_another_type_is_refused():
    @node_rewriter([SIN])
    def cast(fgraph, node):
        return [pt.cast(node.inputs[0], "float32")]

    with pytest.raises(TypeError):
        EquilibriumGraphRewriter([cast]).rewrite(chain(pt.sin, 1))


def test_a_rewriter_leaves_no_feature_behind():
    fgraph = chain(pt.sin, 1)
    before = fgraph.features
    EquilibriumGraphRewriter([sin_to_cos]).rewrite(fgraph)
    assert fgraph.features == before


def test_a_sequence_runs_in_order_and_times_each_pass():
    fgraph = chain(pt.sin, 2)
    first = EquilibriumGraphRewriter([sin_to_cos], name="first")
    second = EquilibriumGraphRewriter([cos_to_exp], name="second")
    report = RewriteReport()
    SequentialGraphRewriter(second, first).run(fgraph, report)
    assert names(fgraph) == ["cos", "cos"]
    assert list(report.seconds) == ["second", "first"]
    assert all(seconds >= 0 for seconds in report.seconds.values())


def test_a_rewriter_keeps_the_name_and_text_of_its_function():
    @node_rewriter([SIN])
    def documented(fgraph, node):
        """A documented rewrite."""

    assert (documented.name, documented.__doc__) == ("documented", "A documented rewrite.")
