"""Graphs pickled in the middle of rewriting, with all Features, can be rewritten further after loading."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from engine import rewriting
from engine import tensor as pt
from engine.assumptions.feature import AssumptionFeature
from engine.errors import InconsistencyError
from engine.graph import Feature, FunctionGraph
from engine.graph.features import (
    Bookkeeper,
    DestroyHandler,
    FullHistory,
    History,
    NodeFinder,
    NoOutputFromInplace,
    PreserveVariableAttributes,
    PrintListener,
    ReplaceValidate,
    Supervisor,
    Validator,
)
from engine.rewriting.changes import Changes
from engine.rewriting.equilibrium import Affected
from engine.rewriting.inner_graphs import InnerGraphs
from engine.rewriting.rewriters import RewriteReport, SequentialGraphRewriter
from engine.rewriting.shape_feature import ShapeFeature
from tests.engine.graph.graph_state import state_of
from tests.engine.graph.small_ops import DEPTHS, PLAIN, chain, combine, constant, follow

FEATURES = {
    AssumptionFeature: AssumptionFeature,
    DestroyHandler: DestroyHandler,
    FullHistory: FullHistory,
    History: History,
    InnerGraphs: lambda: InnerGraphs(SequentialGraphRewriter(), None),
    NoOutputFromInplace: lambda: NoOutputFromInplace([0]),
    NodeFinder: NodeFinder,
    PreserveVariableAttributes: PreserveVariableAttributes,
    PrintListener: lambda: PrintListener(active=False),
    ReplaceValidate: ReplaceValidate,
    ShapeFeature: ShapeFeature,
    Supervisor: lambda: Supervisor([0]),
    Validator: Validator,
    Affected: Affected,
    Changes: Changes,
}
ALONE = (History, Validator)
"""Features that keep out the one that every graph has."""


def subclasses(cls):
    return {cls}.union(*(subclasses(sub) for sub in cls.__subclasses__()))


def passes():
    return rewriting.optdb.query(rewriting.DEFAULT_QUERY).data


def model(*features):
    x, y = pt.vector("x"), pt.matrix("y")
    mean = (x * 1.0 + 0.0).sum() / 4.0
    mean.name = "mean"
    outputs = [pt.exp(mean) * y + pt.exp(mean), -((-x) ** 2), (y * 2.0 * 3.0).sum(axis=0)]
    return FunctionGraph([x, y], outputs, features)


def finish(fgraph, stage):
    """Run the passes from number `stage` on and return the result, frozen."""
    for rewriter in passes()[stage:]:
        rewriter.run(fgraph, RewriteReport())
    fgraph.check_integrity()
    return fgraph.freeze()


def test_no_feature_is_missing_here():
    found = {cls for cls in subclasses(Feature) if cls.__module__.startswith("engine.")}
    assert found - {Feature, Bookkeeper} == set(FEATURES)


@pytest.mark.parametrize("kind", FEATURES, ids=lambda kind: kind.__name__)
def test_a_graph_pickled_at_any_stage_of_the_pipeline_is_rewritten_to_its_end(kind):
    expected = finish(model(), 0)
    for stage in range(len(passes()) + 1):
        fgraph = model(FEATURES[kind]())
        assert any(type(feature) is kind for feature in fgraph.features)
        start = fgraph.freeze()
        checkpoint = fgraph.checkpoint() if kind is not Validator else None
        for rewriter in passes()[:stage]:
            rewriter.run(fgraph, RewriteReport())
        loaded = pickle.loads(pickle.dumps(fgraph))
        loaded.check_integrity()
        assert loaded.freeze() == fgraph.freeze()
        assert [type(feature) for feature in loaded.features] == [
            type(feature) for feature in fgraph.features
        ]
        assert finish(loaded, stage) == expected
        if kind not in ALONE:
            with pytest.raises(TypeError):
                loaded.replace_all_validate([(loaded.outputs[0], loaded.inputs[0])], reason="wrong")
            loaded.replace_all_validate([(loaded.outputs[0], pt.sqr(loaded.outputs[0]))], reason="right")
        if checkpoint is not None:
            loaded.revert(checkpoint)
            assert loaded.freeze() == start
        assert finish(fgraph, stage) == expected


def test_a_graph_pickled_between_two_rewrites_of_a_pass_is_rewritten_to_its_end():
    pickled = []

    @rewriting.node_rewriter(None)
    def keep(fgraph, node):
        pickled.append(pickle.dumps(fgraph))

    place = [rewriter.name for rewriter in passes()].index("canonicalize")
    canonicalize = passes()[place]
    rewriters = [keep, *canonicalize.rewriters]
    fgraph = model(DestroyHandler(), NodeFinder(), FullHistory())
    fgraph.checkpoint()
    rewriting.EquilibriumGraphRewriter(rewriters).run(fgraph, RewriteReport())
    expected = finish(fgraph, place + 1)
    assert len(pickled) > 20
    for blob in pickled[::7]:
        loaded = pickle.loads(blob)
        affected = next(feature for feature in loaded.features if isinstance(feature, Affected))
        assert affected.nodes <= set(loaded.apply_nodes)
        loaded.remove_feature(affected)
        assert finish(loaded, place) == expected


def test_graphs_pickled_in_one_process_are_rewritten_in_another(tmp_path):
    rows = []
    for kind, make in FEATURES.items():
        fgraph = model(make())
        checkpoint = fgraph.checkpoint() if kind is not Validator else None
        for rewriter in passes()[:3]:
            rewriter.run(fgraph, RewriteReport())
        rows.append((fgraph, checkpoint))
    (tmp_path / "rows").write_bytes(pickle.dumps(rows))
    code = (
        "import pickle, sys\n"
        "from tests.engine.graph.test_pickle import finish\n"
        "rows = pickle.load(open(sys.argv[1], 'rb'))\n"
        "done = [finish(fgraph, 3) for fgraph, _ in rows]\n"
        "for fgraph, checkpoint in rows:\n"
        "    if checkpoint is not None:\n"
        "        fgraph.revert(checkpoint)\n"
        "start = [fgraph.freeze() for fgraph, checkpoint in rows if checkpoint is not None]\n"
        "pickle.dump((done, start), open(sys.argv[2], 'wb'))\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "rows", tmp_path / "done"]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[3])
    expected, start = finish(model(), 0), model().freeze()
    done, reverted = pickle.loads((tmp_path / "done").read_bytes())
    assert set(done) == {expected}
    assert set(reverted) == {start}


def test_what_is_pickled_with_a_graph_refers_to_its_parts():
    fgraph = FunctionGraph([PLAIN("x")], [])
    fgraph.add_output(combine(fgraph.inputs[0], constant(1.0)))
    node = fgraph.outputs[0].owner
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        parts = [fgraph, node, node.inputs[1]]
        loaded = pickle.loads(pickle.dumps([parts[i] for i in order]))
        graph, apply, variable = (loaded[order.index(i)] for i in range(3))
        assert graph.outputs[0].owner is apply
        assert variable in graph
        assert variable is apply.inputs[1]


def test_a_feature_pickled_alone_brings_its_graph():
    finder = NodeFinder()
    x = PLAIN("x")
    FunctionGraph([x], [follow(x)], [finder], clone=False)
    loaded = pickle.loads(pickle.dumps(finder))
    assert loaded.fgraph.get_nodes(follow) == [loaded.fgraph.outputs[0].owner]


def test_loading_calls_no_callback_and_forgets_times():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x)], [NodeFinder()])
    assert set(fgraph.execute_callbacks_times) == set(fgraph.features)
    assert not any(pickle.loads(pickle.dumps(fgraph)).execute_callbacks_times.values())


def test_a_loaded_graph_has_the_clients_in_the_same_order():
    x = PLAIN("x")
    many = [follow(x) for _ in range(40)]
    fgraph = FunctionGraph([x], many, clone=False)
    for output in many[5:25:3]:
        fgraph.replace(output, many[0])
    loaded, state = pickle.loads(pickle.dumps((fgraph, state_of(fgraph))))
    assert state_of(loaded) == state


def test_a_deep_copy_is_a_graph_of_its_own():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x)], clone=False)
    twin = copy.deepcopy(fgraph)
    twin.replace(twin.outputs[0], twin.inputs[0])
    assert fgraph.outputs[0].owner.op == follow
    fgraph.check_integrity()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_graph_and_its_deep_past_are_pickled(depth):
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [chain(x, depth)], [DestroyHandler(), FullHistory()], clone=False)
    fgraph.checkpoint()
    fgraph.replace(fgraph.outputs[0], follow(x))
    checkpoint = fgraph.checkpoint()
    fgraph.replace(x, chain(x, depth))
    loaded = pickle.loads(pickle.dumps(fgraph))
    assert len(loaded.apply_nodes) == depth + 1
    loaded.revert(checkpoint)
    assert len(loaded.apply_nodes) == 1
    loaded.revert(1)
    loaded.check_integrity()
    assert len(loaded.apply_nodes) == depth


def test_nodes_that_only_a_feature_knows_are_pickled_however_deep():
    class Memory(Feature):
        def __init__(self, variable):
            self.seen = {"deep": [(variable.owner,)]}

    Memory.__qualname__ = "Memory"
    globals()["Memory"] = Memory
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x)], [Memory(chain(x, 5000))], clone=False)
    loaded = pickle.loads(pickle.dumps(fgraph))
    assert loaded.features[0].seen["deep"][0][0].op == follow
    with pytest.raises(InconsistencyError, match="import it first"):
        loaded.change_node_input(loaded.features[0].seen["deep"][0][0], 0, loaded.inputs[0])
