"""Rewrites given as patterns, under PyTensor's grammar."""

from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.rewriting import LiteralString, OpPattern, PatternNodeRewriter, in2out
from engine.tensor import Elemwise
from engine.tensor.reduction import Reduction, Sum
from tests.engine.graph.small_ops import PLAIN, combine, constant

x, y = pt.dvector("x"), pt.dvector("y")


def rewritten(rewriter: PatternNodeRewriter, output: Any) -> FunctionGraph:
    """Return the graph of `output` after one walk with the rewriter."""
    fgraph = FunctionGraph([x, y], [output])
    in2out(rewriter).rewrite(fgraph)
    return fgraph


def names(fgraph: FunctionGraph) -> list[str]:
    """Return the names of the Ops, in order."""
    return [str(node.op) for node in fgraph.toposort()]


def test_a_match_is_replaced_and_computes_what_the_result_says():
    rewriter = PatternNodeRewriter((pt.abs, (pt.exp, "x")), (pt.exp, "x"))
    fgraph = rewritten(rewriter, pt.abs(pt.exp(x)))
    assert names(fgraph) == [str(pt.exp)]
    f = engine.function(fgraph.inputs, fgraph.outputs[0], on_unused_input="ignore")
    np.testing.assert_allclose(f([1.0, -2.0], [0.0]), np.exp([1.0, -2.0]), rtol=1e-15)


def test_a_name_in_two_places_stands_for_one_variable():
    rewriter = PatternNodeRewriter((pt.sub, (pt.add, "x", "y"), "y"), "x")
    assert names(rewritten(rewriter, (x + y) - y)) == []
    assert len(names(rewritten(rewriter, (x + y) - x * 2))) == 3


def test_the_arguments_of_commutative_ops_match_in_either_order():
    rewriter = PatternNodeRewriter((pt.add, (pt.exp, "x"), (pt.log, "y")), "x")
    assert names(rewritten(rewriter, pt.log(y) + pt.exp(x))) == []
    less = PatternNodeRewriter((pt.sub, (pt.exp, "x"), (pt.log, "y")), "x")
    assert len(names(rewritten(less, pt.log(y) - pt.exp(x)))) == 3


def test_numbers_and_constants_match_equal_constants():
    rewriter = PatternNodeRewriter((pt.pow, "x", 2), (pt.sqr, "x"))
    assert str(pt.sqr) in names(rewritten(rewriter, x**2))
    assert str(pt.sqr) not in names(rewritten(rewriter, x**3))
    factors = pt.constant([2.0, 3.0])
    two = PatternNodeRewriter((pt.mul, "x", factors), (pt.sub, "x", factors))
    assert names(rewritten(two, x * pt.constant([2.0, 3.0]))) == [str(pt.sub)]
    assert names(rewritten(two, x * pt.constant([2.0, 4.0]))) == [str(pt.mul)]


def test_a_constraint_refuses_matches():
    def positive(variable: Any) -> bool:
        return getattr(variable, "data", None) is not None and bool((variable.data > 0).all())

    constrained = {"pattern": "c", "constraint": positive}
    rewriter = PatternNodeRewriter((pt.maximum, (pt.exp, "x"), constrained), (pt.exp, "x"))
    assert len(names(rewritten(rewriter, pt.maximum(pt.exp(x), pt.constant([1.0]))))) == 1
    assert len(names(rewritten(rewriter, pt.maximum(pt.exp(x), pt.constant([-1.0]))))) == 2


def test_what_has_other_clients_is_kept_unless_that_is_allowed():
    shared = pt.exp(x)
    out = pt.stack([pt.log(shared), shared])
    pattern = (pt.log, (pt.exp, "x")), "x"
    assert str(pt.log) in names(rewritten(PatternNodeRewriter(*pattern), out))
    assert str(pt.log) not in names(
        rewritten(PatternNodeRewriter(*pattern, allow_multiple_clients=True), out)
    )


def test_an_op_is_matched_by_its_class_and_parameters():
    rewriter = PatternNodeRewriter(
        (OpPattern(Sum, axis=(0,)), (pt.neg, "x")), lambda fgraph, node, found: None
    )
    assert rewriter.tracks() == (Sum,)
    kept = rewritten(rewriter, (-x).sum())
    assert len(names(kept)) == 2

    def negated(fgraph: FunctionGraph, node: Any, found: dict[str, Any]) -> Any:
        return pt.neg(node.op(found["x"]))

    outward = PatternNodeRewriter((OpPattern(Reduction, axis="axes"), (pt.neg, "x")), negated)
    assert names(rewritten(outward, (-x).sum()))[-1] == str(pt.neg)
    literal = OpPattern(Elemwise, scalar_op=LiteralString("nothing"))
    assert len(names(rewritten(PatternNodeRewriter((literal, "x"), "x"), pt.exp(x)))) == 1


def test_a_result_of_another_dtype_is_cast_or_refused():
    pattern = (pt.exp, "x"), (pt.cast, "x", "float32")
    single = PatternNodeRewriter((pt.exp, "x"), lambda fgraph, node, found: pt.cast(found["x"], "float32"))
    assert rewritten(single, pt.exp(x)).outputs[0].type.dtype == "float64"
    strict = PatternNodeRewriter(
        pattern[0], lambda fgraph, node, found: pt.cast(found["x"], "float32"), allow_cast=False
    )
    assert names(rewritten(strict, pt.exp(x))) == [str(pt.exp)]


def test_other_nodes_than_the_tracked_ones_can_be_tried():
    def clients(fgraph: FunctionGraph, node: Any) -> Any:
        return [client for client, _ in fgraph.clients[node.outputs[0]]]

    rewriter = PatternNodeRewriter((pt.log, (pt.exp, "x")), "x", tracks=[pt.exp], get_nodes=clients)
    assert names(rewritten(rewriter, pt.sin(pt.log(pt.exp(x))))) == [str(pt.sin)]
    with pytest.raises(ValueError, match="`get_nodes` is needed"):
        PatternNodeRewriter((pt.log, "x"), "x", tracks=[pt.exp])


def test_a_pattern_without_an_op_is_refused():
    with pytest.raises(TypeError, match="must be a tuple that begins with an Op"):
        PatternNodeRewriter("x", "x")  # type: ignore[arg-type]


def test_a_pattern_may_have_a_constant_of_a_users_type():
    number = PLAIN()
    fgraph = FunctionGraph(None, [combine(combine(constant(2.0), number), number)])
    rewrite = PatternNodeRewriter((combine, constant(2.0), "y"), (combine, "y", constant(2.0)))
    in2out(rewrite, ignore_newtrees=True).rewrite(fgraph)
    inner = fgraph.outputs[0].owner.inputs[0].owner.inputs
    assert inner[0] is fgraph.inputs[0]
    assert inner[1].data == 2.0
