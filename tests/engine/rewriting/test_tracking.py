"""The rewrites of an Op by what they track, and constants that are one before a graph is made."""

import engine.tensor as pt
from engine.graph import FunctionGraph, Op
from engine.graph.rewriting.basic import OpToRewriterTracker, node_rewriter, pre_constant_merge
from engine.tensor.elemwise import Elemwise


def rewrite_of(tracks):
    return node_rewriter(tracks)(lambda fgraph, node: None)


def test_rewrites_of_a_class_come_before_those_of_the_classes_above():
    tracker = OpToRewriterTracker()
    of_all, of_exp, of_ops, of_elemwise = (
        rewrite_of(None),
        rewrite_of([pt.exp]),
        *map(rewrite_of, ([Op], [Elemwise])),
    )
    for each in (of_all, of_exp, of_ops, of_elemwise):
        tracker.add_tracker(each)
    exp = pt.exp(pt.vector()).owner.op
    assert tracker.get_trackers(exp) == [of_elemwise, of_ops, of_exp, of_all]
    assert tracker.get_trackers(pt.dot(pt.vector(), pt.vector()).owner.op) == [of_ops, of_all]
    assert list(tracker.get_rewriters()) == [of_ops, of_elemwise, of_exp, of_all]


def test_equal_constants_outside_of_a_graph_become_one():
    x = pt.vector("x")
    y = pt.exp(x + pt.constant([1.0, 2.0])) * pt.constant([1.0, 2.0])
    (found,) = pre_constant_merge(FunctionGraph([], []), [y])
    assert found is y
    assert y.owner.inputs[1] is y.owner.inputs[0].owner.inputs[0].owner.inputs[1]
    z = pt.exp(x + pt.constant([1.0, 2.0])) * pt.constant([1.0, 2.0])
    kept = z.owner.inputs[1]
    pre_constant_merge(FunctionGraph([x], [z], clone=False), [z])
    assert z.owner.inputs[1] is kept
