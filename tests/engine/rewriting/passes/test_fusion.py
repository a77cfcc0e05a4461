import time

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import scalar
from engine.graph import FunctionGraph
from engine.inner import Composite
from engine.lowering.statements import scalar_statements
from engine.rewriting import RewriteDatabaseQuery, run_pipeline
from engine.rewriting.passes.fusion import MAX_INPUTS, MAX_STATEMENTS, FusionOptimizer
from engine.tensor import Elemwise

FUSION = RewriteDatabaseQuery(include=["fusion", "merge"])
X = np.arange(6.0).reshape(2, 3) - 2.5


@pytest.fixture
def fused(rewritten):
    return lambda inputs, outputs: rewritten(inputs, outputs, query=FUSION)


def composites(graph):
    return [
        n
        for n in graph.fgraph.toposort()
        if isinstance(n.op, Elemwise) and isinstance(n.op.scalar_op, Composite)
    ]


def names(node):
    return [inner.op.name for inner in node.op.scalar_op.fgraph.nodes]


def test_operations_that_pass_values_to_each_other_become_one(fused, dtype):
    x, y = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype)
    graph = fused([x, y], pt.exp(x * y) + pt.sin(x)).check_values(X.astype(dtype), X.astype(dtype))
    assert graph.ops == ["composite"]
    (node,) = composites(graph)
    assert names(node) == ["mul", "exp", "sin", "add"]
    assert len(node.inputs) == 2


def test_one_operation_stays_as_it_is(fused):
    x = pt.dmatrix("x")
    assert fused(x, pt.exp(x)).ops == ["exp"]


def test_a_value_used_elsewhere_too_is_one_more_output_and_computed_once(fused):
    x = pt.dmatrix("x")
    y = pt.exp(x)
    graph = fused(x, [pt.sin(y), y, pt.dot(y, y.T)]).check_values(X)
    (node,) = composites(graph)
    assert sorted(names(node)) == ["exp", "sin"]
    assert len(node.outputs) == 2


def test_what_is_small_is_not_computed_inside_of_what_is_large(fused):
    x, row, s = pt.dmatrix("x"), pt.drow("row"), pt.dscalar("s")
    graph = fused([x, row, s], (x - pt.exp(row)) * pt.log(s)).check_values(X, X[:1], np.array(2.0))
    (node,) = composites(graph)
    assert names(node) == ["sub", "mul"]
    assert {"exp", "log"} <= set(graph.ops)


def test_chains_of_small_operations_are_fused_on_their_own(fused):
    x, s = pt.dmatrix("x"), pt.dscalar("s")
    graph = fused([x, s], x * pt.exp(s * s) + x).check_values(X, np.array(0.5))
    assert [names(node) for node in composites(graph)] == [["mul", "exp"], ["mul", "add"]]


def test_constants_of_one_element_are_baked_in_and_others_are_inputs(fused):
    x = pt.dmatrix("x")
    graph = fused(x, pt.exp(x * 2.5 + np.array([[1.0]])) * np.arange(3.0)).check_values(X)
    (node,) = composites(graph)
    assert len(node.inputs) == 2
    body = scalar_statements(node.op.scalar_op, ("float64", "float64"))
    constants = [arg[2] for s in body.statements for arg in s.arguments if arg[0] == "constant"]
    assert constants == [np.float64(2.5).tobytes(), np.float64(1).tobytes()]


def test_a_fill_is_resolved_where_another_input_has_the_shape(rewritten):
    x, y, c = pt.dmatrix("x"), pt.dmatrix("y"), pt.dscalar("c")
    graph = rewritten([x, y, c], pt.exp(pt.second(y, c)) + x, query=FUSION).check_values(X, X, np.array(2.0))
    assert [len(node.inputs) for node in composites(graph)] == [2]


def test_a_fill_is_kept_where_it_alone_gives_the_shape(rewritten):
    x, c = pt.dmatrix("x"), pt.dscalar("c")
    graph = rewritten([x, c], pt.exp(pt.second(x, c)), query=FUSION).check_values(X, np.array(2.0))
    assert [names(node) for node in composites(graph)] == [["second", "exp"]]


def test_no_cycle_arises_through_what_cannot_be_fused(fused):
    x = pt.dmatrix("x")
    y = pt.exp(x)
    total = pt.sum(y, keepdims=True)
    graph = fused(x, [pt.sin(y / total) + y, total]).check_values(X)
    graph.fgraph.toposort()
    assert graph.ops.count("Sum{axis=[0, 1]}") == 1


def test_no_cycle_arises_between_two_composites(fused):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    a, b = pt.exp(x), pt.exp(y)
    first = a + pt.sum(b, keepdims=True)
    second = b + pt.sum(a, keepdims=True)
    graph = fused([x, y], [pt.sin(first) * second, pt.cos(second)]).check_values(X, X)
    graph.fgraph.toposort()


def test_a_value_waits_for_its_only_use(fused):
    x = pt.dmatrix("x")
    graph = fused(x, pt.exp(x) * pt.sum(x, keepdims=True)).check_values(X)
    assert [names(node) for node in composites(graph)] == [["exp", "mul"]]


def test_what_feeds_one_reduction_alone_is_a_composite_with_one_output(fused):
    x, y = pt.dvector("x"), pt.dvector("y")
    z = (x - y) * 3.0
    graph = fused([x, y], [pt.sum(pt.sqr(z) + 1.0), pt.max(pt.exp(z) * z), z]).check_values(X[0], X[1])
    found = {tuple(names(node)): len(node.outputs) for node in composites(graph)}
    assert found == {("sub", "mul"): 1, ("sqr", "add"): 1, ("exp", "mul"): 1}


def test_a_long_chain_is_cut_into_bounded_composites(fused):
    x = y = pt.dvector("x")
    for _ in range(130):
        y = pt.sin(y) + x
    graph = fused(x, y).check_values(X[0])
    sizes = [len(names(node)) for node in composites(graph)]
    assert sizes == [MAX_STATEMENTS, MAX_STATEMENTS, 60]


def test_dtypes_are_mixed_without_changing_any(fused):
    x, i, b = pt.fmatrix("x"), pt.imatrix("i"), pt.matrix("b", dtype="bool")
    outputs = [pt.where(b, x * i, x), pt.cast(i, "bool") & b, i // 2 + i]
    graph = fused([x, i, b], outputs)
    graph.check_values(X.astype("float32"), X.astype("int32"), X > 0, exact=True)
    assert [v.type.dtype for v in graph.fgraph.outputs] == [v.type.dtype for v in outputs]


def test_composites_are_fused_further_and_opened(fused):
    x = pt.dmatrix("x")
    once = fused(x, pt.exp(pt.sin(x)))
    again = fused(once.fgraph.inputs, [pt.sqr(once.fgraph.outputs[0])]).check_values(X)
    assert [names(node) for node in composites(again)] == [["sin", "exp", "sqr"]]


def test_the_same_expression_in_two_models_is_the_same_composite(fused):
    x, y, s = pt.dvector("x"), pt.dvector("y"), pt.dvector("s")

    def expression(a, b):
        return pt.exp(a - b) * (a - b)

    first = fused([x, y], expression(x, y))
    second = fused([s, y, x], [pt.sum(s), pt.dot(s, x), expression(x[np.arange(2)], s)])
    assert composites(first)[0].op == composites(second)[0].op


def test_the_order_of_outputs_does_not_depend_on_where_they_are_used(fused):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")

    def pair(a, b):
        inner = a * b
        return pt.exp(inner), pt.sin(inner)

    first, second = pair(x, y), pair(x, y)
    one, other = fused([x, y], list(first)), fused([x, y], list(reversed(second)))
    assert composites(one)[0].op == composites(other)[0].op
    one.check_values(X, X)
    other.check_values(X, X)


def test_a_sum_of_many_tensors_becomes_composites_that_are_equal(fused):
    count = 1 + 3 * (MAX_INPUTS - 1)
    inputs = [pt.dvector(f"x{k}") for k in range(count)]
    total = inputs[0]
    for variable in inputs[1:]:
        total = total + variable
    graph = fused(inputs, total)
    found = composites(graph)
    assert len(found) == 3
    assert len({node.op for node in found}) == 1
    assert {len(node.inputs) for node in found} == {MAX_INPUTS}
    graph.check_values(*[X[0] + k for k in range(count)])


def test_a_composite_keeps_only_the_results_and_arguments_that_are_read(fused):
    a, b, c = (scalar.float64(name) for name in "abc")
    written = Elemwise(Composite([a, b, c], [a + 1, b - 1]))
    x, y, z = pt.dmatrices("x", "y", "z")
    both = fused([x, y, z], list(written(x, y, z))).check_values(X, X + 1, X)
    assert [len(node.inputs) for node in composites(both)] == [2]
    second = fused([x, y, z], written(x, y, z)[1]).check_values(X, X + 1, X)
    assert [(len(node.inputs), len(node.outputs)) for node in composites(second)] == [(1, 1)]


def test_an_argument_that_is_not_read_stays_where_it_gives_the_shape(fused):
    a, b = scalar.float64("a"), scalar.float64("b")
    x, row = pt.dmatrix("x"), pt.drow("row")
    graph = fused([row, x], Elemwise(Composite([a, b], [a + 1]))(row, x)).check_values(X[:1], X)
    assert [len(node.inputs) for node in composites(graph)] == [2]


def test_arguments_of_a_composite_are_converted_to_its_dtypes(fused):
    a = scalar.float32("a")
    x = pt.dvector("x")
    y = 3 * Elemwise(Composite([a], [a + 1]))(x)
    graph = fused(x, y)
    assert [names(node) for node in composites(graph)] == [["cast", "add", "mul"]]
    result = engine.function([x], y)(np.array([0.1, 1e-9]))
    assert result.dtype == "float32"
    np.testing.assert_array_equal(result, 3 * (np.float32([0.1, 1e-9]) + np.float32(1)))


def test_fusing_is_not_quadratic():
    def seconds(n):
        xs = [pt.dvector(f"x{i}") for i in range(n // 20)]
        total = pt.sum(xs[0])
        for x in xs:
            y = x
            for _ in range(9):
                y = pt.sin(y) * x
            total = total + pt.sum(y * pt.exp(total))
        fgraph = FunctionGraph(xs, [total])
        start = time.process_time()
        run_pipeline(fgraph, FUSION)
        return time.process_time() - start

    small, large = (min(seconds(n) for _ in range(3)) for n in (500, 5000))
    assert large < 30 * small


def test_applying_the_fusion_tells_how_many_nodes_became_how_many():
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(pt.sin(x)), pt.sum(x)])
    fusion = FusionOptimizer()
    assert fusion.apply(fgraph) == (fusion, 1, 2)
