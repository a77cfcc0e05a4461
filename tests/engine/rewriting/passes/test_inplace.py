"""Inplace rewriting: last of all, and only where nothing needs the overwritten value."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.errors import InconsistencyError
from engine.graph import FunctionGraph
from engine.graph.features import DestroyHandler, Supervisor
from engine.graph.reference import evaluate
from engine.inner import OpFromGraph
from engine.inner.scan import Scan
from engine.inner.scan_info import ScanInfo
from engine.rewriting import DEFAULT_QUERY, run_pipeline
from engine.rewriting.inner_graphs import InnerGraphs
from engine.rewriting.rewriters import RewriteReport, SequentialGraphRewriter
from engine.tensor.slicing import IncSubtensor

UNFUSED = DEFAULT_QUERY.excluding("fusion")


def rewritten(inputs, outputs, *features):
    fgraph = FunctionGraph(inputs, outputs, features)
    report = run_pipeline(fgraph, UNFUSED)
    return fgraph, report.applied


def overwriting(fgraph):
    return [str(node.op) for node in fgraph.toposort() if node.op.destroy_map]


def handlers(fgraph):
    return [feature for feature in fgraph.features if isinstance(feature, DestroyHandler)]


def assert_as_before(fgraph, inputs, outputs, *values):
    kept = [np.array(value) for value in values]
    due = evaluate(inputs, outputs, kept)
    found = evaluate(fgraph.inputs, fgraph.outputs, values, fgraph.toposort())
    for result, expected in zip(found, due, strict=True):
        np.testing.assert_allclose(result, expected)
    for value, before in zip(values, kept, strict=True):
        np.testing.assert_array_equal(value, before)


@pytest.fixture
def x():
    return pt.dvector("x")


def test_a_chain_of_changes_overwrites_one_array(x):
    outputs = [pt.exp(x)[0].set(1.0)[1:].inc(2.0)[[0, 1]].inc(3.0)[[1]].set(4.0)]
    fgraph, applied = rewritten([x], outputs)
    assert applied["local_inplace_setsubtensor"] == applied["local_inplace_AdvancedIncSubtensor"] == 2
    assert len(overwriting(fgraph)) == 4
    assert_as_before(fgraph, [x], outputs, np.arange(3.0))


def test_inputs_constants_and_outputs_stay(x):
    data = pt.constant(np.arange(40.0))
    y = pt.exp(x)
    outputs = [x[0].set(1.0), x[::-1][0].set(1.0), data[0].set(x[0]), y[0].set(1.0), y, y[1:][0].set(2.0)]
    fgraph, _ = rewritten([x], outputs)
    assert overwriting(fgraph) == []
    assert handlers(fgraph) == []
    assert_as_before(fgraph, [x], outputs, np.arange(3.0))


def test_what_is_read_elsewhere_is_read_first(x):
    y = pt.exp(x)
    outputs = [y[0].set(1.0), pt.sum(y), pt.tanh(y[::-1])]
    fgraph, _ = rewritten([x], outputs)
    assert overwriting(fgraph) == ["SetSubtensor{i}"]
    assert fgraph.toposort()[-1].op.destroy_map
    assert_as_before(fgraph, [x], outputs, np.arange(3.0))


def test_a_fill_that_several_ops_overwrite_is_one_for_each(x):
    zeros = pt.zeros(3)
    outputs = [zeros[[0, 1, 0]].inc(x), zeros[[2, 1, 2]].inc(x), zeros[:2].inc(x[:2])]
    fgraph, _ = rewritten([x], outputs)
    assert len(overwriting(fgraph)) == 3
    assert [str(node.op) for node in fgraph.toposort()].count("Alloc") == 3
    assert_as_before(fgraph, [x], outputs, np.arange(3.0))


def test_a_fill_that_one_op_overwrites_and_another_reads_is_filled_once(x):
    n = pt.lscalar("n")
    ones = pt.alloc(x[0], n)
    outputs = [ones[:2].inc(x[:2]), pt.sort(ones)]
    fgraph, _ = rewritten([x, n], outputs)
    assert len(overwriting(fgraph)) == 1
    assert [str(node.op) for node in fgraph.toposort()].count("Alloc") == 1
    assert_as_before(fgraph, [x, n], outputs, np.arange(3.0), np.array(4))


def test_of_two_changes_of_one_tensor_one_overwrites_it(x):
    y = pt.exp(x)
    outputs = [y[0].set(1.0), y[1].set(2.0)]
    fgraph, _ = rewritten([x], outputs)
    assert len(overwriting(fgraph)) == 1
    assert_as_before(fgraph, [x], outputs, np.arange(3.0))


def test_a_tensor_is_not_overwritten_by_what_is_computed_from_it_and_itself(x):
    y = pt.exp(x)
    changed = y[0].set(1.0)
    for outputs in ([y * changed], [changed[::-1] + y], [y[1:].set(y[:-1])]):
        fgraph, _ = rewritten([x], outputs)
        assert overwriting(fgraph) == []
        assert_as_before(fgraph, [x], outputs, np.arange(3.0))


def test_a_graph_without_such_ops_gets_no_features(x):
    fgraph, _ = rewritten([x], [pt.exp(x) + 1])
    assert handlers(fgraph) == []
    fgraph, _ = rewritten([x], [pt.exp(x)[0].set(1.0)])
    assert len(handlers(fgraph)) == 1


def test_a_query_can_leave_it_out(x):
    fgraph = FunctionGraph([x], [pt.exp(x)[0].set(1.0)])
    run_pipeline(fgraph, DEFAULT_QUERY.excluding("inplace"))
    assert overwriting(fgraph) == []


def test_an_input_that_its_graph_gives_up_is_overwritten():
    x, y = pt.dvector("x"), pt.dvector("y")
    fgraph, _ = rewritten([x, y], [x[0].set(1.0), y[0].set(1.0)], Supervisor([1]))
    (node,) = [node for node in fgraph.toposort() if node.op.destroy_map]
    assert node.inputs[0] is fgraph.inputs[0]


def test_a_graph_that_overwrites_its_input_is_refused(x):
    overwrite = IncSubtensor(["i"], set_instead_of_inc=True, inplace=True)
    with pytest.raises(InconsistencyError, match="which is protected"):
        rewritten([x], [overwrite(x, 1.0, 0)], DestroyHandler())
    with pytest.raises(ValueError, match=r"SetSubtensor\{i\} of its graph overwrites an input"):
        OpFromGraph([x], [overwrite(pt.exp(x), 1.0, 0)])


def test_the_order_is_a_part_of_the_frozen_graph_and_of_what_it_is_thawed_to(x):
    y = pt.exp(x)
    outputs = [y[0].set(1.0), pt.tanh(y[::-1])]
    frozen = rewritten([x], outputs)[0].freeze()
    assert frozen.nodes[-1].op.destroy_map
    assert [node.position for node in frozen.nodes] == list(range(len(frozen.nodes)))
    thawed = frozen.unfreeze()
    assert thawed.freeze() is frozen
    assert_as_before(thawed, [x], outputs, np.arange(3.0))


class Recorded:
    """A store of graphs that counts calls."""

    def __init__(self):
        self.graphs, self.kept = {}, []

    def find(self, graph):
        return self.graphs.get(graph)

    def keep(self, graph, optimized, seconds):
        self.graphs[graph] = optimized
        self.kept.append(graph)


def scan_of(keep, inputs, outputs):
    return Scan(inputs, outputs, ScanInfo(0, ((-1,),), (keep,), 0, 0))


def test_within_an_op_its_inputs_stay_and_what_it_computes_is_overwritten(x):
    inner = pt.dvector("inner")
    op = OpFromGraph([inner], [pt.exp(inner)[0].set(1.0), inner[0].set(1.0)])
    outputs = op(x)
    fgraph, _ = rewritten([x], outputs)
    (found,) = [node.op for node in fgraph.toposort()]
    changed = [node for node in found.fgraph.nodes if isinstance(node.op, IncSubtensor)]
    assert sorted(node.op.inplace for node in changed) == [False, True]
    assert next(node for node in changed if not node.op.inplace).inputs[0] is found.fgraph.inputs[0]
    assert_as_before(fgraph, [x], outputs, np.arange(3.0))


def test_a_loop_overwrites_the_state_of_which_only_the_last_row_is_kept_and_both_share_one_entry():
    row, start = pt.dvector("row"), pt.dmatrix("start")
    outputs = [row[0].set(pt.sum(row))]
    ops = [scan_of(1, [row], outputs), scan_of(None, [row], outputs)]
    assert ops[0].fgraph is ops[1].fgraph
    values = [op(pt.constant(3), start) for op in ops]
    fgraph = FunctionGraph([start], values)
    store = Recorded()
    report = run_pipeline(fgraph, UNFUSED.excluding("scan"), store)
    found = {node.op.info.keeps: node.op for node in fgraph.toposort()}
    assert found[(1,)].fgraph.nodes[-1].op.inplace
    assert not any(node.op.destroy_map for node in found[(None,)].fgraph.nodes)
    assert report.applied["optimize_inner_graphs"] == 1
    assert store.kept == [ops[0].fgraph]
    assert not any(node.op.destroy_map for node in store.graphs[ops[0].fgraph].nodes)
    assert_as_before(fgraph, [start], values, np.arange(3.0).reshape(1, 3))


def test_loops_that_give_up_the_same_rows_share_the_graph_that_overwrites_them():
    row, start = pt.dvector("row"), pt.dmatrix("start")
    op = scan_of(1, [row], [row[0].set(pt.sum(row))])
    fgraph = FunctionGraph([start], [op(pt.constant(3), start), op(pt.constant(4), start)])
    inner = InnerGraphs(SequentialGraphRewriter(), None, SequentialGraphRewriter())
    found = {id(inner.optimized_op(fgraph, node.op, RewriteReport())) for node in fgraph.toposort()}
    assert len(found) == 1
