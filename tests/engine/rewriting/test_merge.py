import numpy as np

import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.rewriting import MergeOptimizer


def merged(inputs, outputs):
    fgraph = FunctionGraph(inputs, outputs)
    report = MergeOptimizer().rewrite(fgraph)
    fgraph.check_integrity()
    return fgraph, report.applied


def constants(fgraph):
    return [v for v in fgraph.variables if hasattr(v, "data")]


def test_equal_nodes_become_one_however_deep():
    x = pt.dvector("x")
    first, second = (pt.exp(pt.sin(x) + pt.constant([1.5, 2.5])) for _ in range(2))
    fgraph, applied = merged([x], [first * second])
    assert len(fgraph.apply_nodes) == 4
    assert applied == {"merge_constants": 1, "merge_nodes": 3}


def test_equal_outputs_become_one_variable():
    x = pt.dvector("x")
    fgraph, _ = merged([x], [pt.exp(x), pt.exp(x)])
    assert fgraph.outputs[0] is fgraph.outputs[1]


def test_constants_are_equal_by_dtype_shape_and_every_bit():
    values = [0.0, -0.0, np.float32(0), [0.0], np.nan, 0, False]
    fgraph, applied = merged([], [pt.constant(value) for value in (*values, np.nan, [0.0])])
    assert applied == {"merge_constants": 2}
    assert len(constants(fgraph)) == len(values)


def test_nodes_with_other_properties_or_other_inputs_stay():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    outputs = [pt.sum(x, 0), pt.sum(x, 1), pt.sum(y, 0), x - y, y - x]
    fgraph, applied = merged([x, y], outputs)
    assert applied == {}
    assert len(fgraph.apply_nodes) == 5


def test_of_data_only_the_same_array_is_one():
    x = pt.dvector("x")
    data = pt.constant(np.arange(40.0))
    shared, other = (pt.TensorConstant(data.type, values) for values in (data.data, data.data.copy()))
    fgraph, _ = merged([x], [x + data, x * shared, x - other])
    assert len(constants(fgraph)) == 2


def test_of_equal_nodes_the_one_whose_type_says_more_is_kept():
    x, known = pt.dvector("x"), pt.tensor("known", dtype="float64", shape=(3,))
    fgraph = FunctionGraph([x, known], [pt.exp(x), pt.exp(known), pt.sin(x)])
    fgraph.replace(fgraph.inputs[0], fgraph.inputs[1])
    MergeOptimizer().rewrite(fgraph)
    assert fgraph.outputs[0] is fgraph.outputs[1]
    assert fgraph.outputs[0].type.shape == (3,)


def test_a_second_pass_finds_nothing():
    x = pt.dvector("x")
    fgraph, _ = merged([x], [pt.exp(x + 1.0) + pt.exp(x + pt.constant([1.0]))])
    assert MergeOptimizer().rewrite(fgraph).total == 0
