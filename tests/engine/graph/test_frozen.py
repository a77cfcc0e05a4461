"""Frozen graphs: immutable, and equal ones are one object, in this process and after pickling."""

import copy
import gc
import math
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import function
from engine.errors import MissingInputError
from engine.graph import (
    FrozenApply,
    FrozenConstant,
    FrozenFunctionGraph,
    FunctionGraph,
    NominalVariable,
    Output,
    frozen_nodes,
)
from tests.engine.graph.small_ops import (
    DEPTHS,
    PLAIN,
    Combine,
    Floats,
    chain,
    combine,
    constant,
    follow,
    split,
)

ROOT = Path(__file__).parents[3]


def freeze(inputs, *outputs):
    return FrozenFunctionGraph.from_io(inputs, outputs)


def example(name="x", weight=1.0, number=2.0):
    x, y = PLAIN(name), PLAIN("y")
    first, second = split(x)
    return freeze([x, y], Combine("c", weight)(first, constant(number), y), second)


def test_equal_graphs_are_the_same_objects_whatever_their_names():
    first, second = example("x"), example("other")
    assert first == second
    assert hash(first) == hash(second)
    assert first.outputs[0] is second.outputs[0]


@pytest.mark.parametrize(
    "other", [example(weight=2.0), example(number=3.0), example(weight=1), example(number=-2.0)]
)
def test_graphs_that_differ_in_an_op_or_a_constant_differ(other):
    assert example() != other
    assert example().outputs[0] is not other.outputs[0]
    assert example() != "a graph"


def test_graphs_that_differ_in_an_edge_an_output_or_an_input_differ():
    x, y = PLAIN("x"), PLAIN("y")
    assert freeze([x, y], combine(x, y)) != freeze([x, y], combine(y, x))
    assert freeze([x, y], combine(x, y)) == freeze([y, x], combine(y, x))
    assert freeze([x], *split(x)) != freeze([x], *split(x)[::-1])
    assert freeze([x], follow(x)) != freeze([x, y], follow(x))
    z = Floats("other")("z")
    assert freeze([x], follow(x)) != freeze([z], follow(z))


def test_equal_subgraphs_are_one_wherever_they_are():
    x = PLAIN("x")
    assert len(freeze([x], combine(follow(x), follow(x))).nodes) == 2
    alone = freeze([x], follow(x)).outputs[0]
    assert freeze([x], combine(follow(x), constant(1.0))).outputs[0].owner.inputs[0] is alone


@pytest.mark.parametrize(
    "value",
    [0.0, -0.0, math.nan, math.inf, 5e-324, struct.unpack("<d", b"\x01" + b"\0" * 5 + b"\xf8\x7f")[0]],
)
def test_constants_are_one_bit_for_bit(value):
    again = struct.unpack("<d", struct.pack("<d", value))[0]
    assert FrozenConstant(PLAIN, value) is FrozenConstant(PLAIN, again)
    others = [v for v in (0.0, -0.0, math.nan) if struct.pack("<d", v) != struct.pack("<d", value)]
    assert all(FrozenConstant(PLAIN, other) is not FrozenConstant(PLAIN, value) for other in others)


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
def test_arrays_are_one_by_dtype_shape_and_bits(dtype, size):
    value = (np.arange(size) % 2).astype(dtype)
    kind = pt.tensor_type(dtype, (size,))
    first = FrozenConstant(kind, value)
    strided = np.stack([value, value], 1)[:, 0]
    assert FrozenConstant(kind, value.copy()) is first
    assert FrozenConstant(kind, strided) is first
    changed = value.copy()
    changed[-1] = 1 - changed[-1]
    assert FrozenConstant(kind, changed) is not first
    square = FrozenConstant(pt.tensor_type(dtype, (size, 1)), value[:, None])
    assert square is not first


def test_arrays_that_compare_equal_and_differ_in_bits_are_two():
    kind = pt.tensor_type("float64", (2,))
    zeros, negative = np.array([0.0, 1.0]), np.array([-0.0, 1.0])
    assert FrozenConstant(kind, zeros) is not FrozenConstant(kind, negative)
    nan = np.array([np.nan, 1.0])
    assert FrozenConstant(kind, nan) is FrozenConstant(kind, nan.copy())
    payload = nan.copy()
    payload.view("int64")[0] += 1
    assert FrozenConstant(kind, nan) is not FrozenConstant(kind, payload)


class Colliding(Floats):
    """Floats with keys that all collide, as digests might."""

    def data_key(self, value):
        return (b"same",)

    def same_data(self, first, second):
        return struct.pack("<d", first) == struct.pack("<d", second)


def test_constants_with_one_key_and_different_data_are_two():
    first, second, third = [FrozenConstant(Colliding(), value) for value in (1.0, 2.0, 3.0)]
    assert (first.data, second.data, third.data) == (1.0, 2.0, 3.0)
    assert FrozenConstant(Colliding(), 1.0) is first
    assert FrozenConstant(Colliding(), 2.0) is second
    assert FrozenConstant(Colliding(), 3.0) is third


def test_inputs_are_one_by_position_and_type():
    assert NominalVariable(0, PLAIN) is NominalVariable(0, Floats())
    assert NominalVariable(0, PLAIN) is not NominalVariable(1, PLAIN)
    assert NominalVariable(0, PLAIN) is not NominalVariable(0, Floats("other"))
    assert str(NominalVariable(0, PLAIN)) == "i0"


def test_the_tables_keep_nothing_alive():
    x = PLAIN("x")
    gc.collect()
    before = len(frozen_nodes._nodes), len(frozen_nodes._constants)
    graph = freeze([x], Combine("unique", 17.25)(x, constant(99.125)))
    assert (len(frozen_nodes._nodes), len(frozen_nodes._constants)) == (before[0] + 1, before[1] + 1)
    del graph
    gc.collect()
    assert (len(frozen_nodes._nodes), len(frozen_nodes._constants)) == before


def test_a_deep_graph_is_freed_at_once():
    gc.collect()
    before = len(frozen_nodes._nodes)
    x = y = PLAIN("x")
    for _ in range(50):
        y = Combine("deep", 1.0)(y, x)
    graph = freeze([x], y)
    assert len(frozen_nodes._nodes) == before + 50
    del graph
    gc.collect()
    assert len(frozen_nodes._nodes) == before


def test_nothing_can_be_assigned_or_deleted():
    graph = example()
    node = graph.nodes[0]
    for item, name in [
        (node, "op"),
        (node.outputs[0], "name"),
        (graph.inputs[0], "type"),
        (FrozenConstant(PLAIN, 1.0), "data"),
    ]:
        with pytest.raises(AttributeError, match="frozen graphs do not change"):
            setattr(item, name, None)
        with pytest.raises(AttributeError, match="frozen graphs do not change"):
            delattr(item, name)
    assert isinstance(node, FrozenApply)
    assert isinstance(node.inputs, tuple)


def test_a_root_that_is_no_input_is_refused_and_named():
    x, y = PLAIN("x"), PLAIN("y")
    with pytest.raises(MissingInputError, match="Freezing a graph: Orphan y of type") as caught:
        freeze([x], combine(x, y))
    assert caught.value.variable is y
    with pytest.raises(MissingInputError, match="used by an output"):
        freeze([x], y)


def test_inputs_and_constants_can_be_outputs():
    x = PLAIN("x")
    graph = freeze([x], x, constant(1.0))
    assert graph.outputs == (NominalVariable(0, PLAIN), FrozenConstant(PLAIN, 1.0))


def test_a_graph_that_is_equal_to_a_living_one_is_that_one():
    graph = example()
    assert example("other") is graph
    assert pickle.loads(pickle.dumps(graph)) is graph
    assert copy.copy(graph) is graph
    assert copy.deepcopy([graph, graph.nodes[0], graph.outputs[0]]) == [
        graph,
        graph.nodes[0],
        graph.outputs[0],
    ]


def test_a_graph_of_parts_that_are_not_frozen_is_refused():
    x = PLAIN("x")
    with pytest.raises(TypeError, match="input x is no NominalVariable"):
        FrozenFunctionGraph([x], [])
    with pytest.raises(TypeError, match="is not frozen"):
        FrozenFunctionGraph([], [follow(x)])
    with pytest.raises(TypeError, match="its input x is not frozen"):
        FrozenApply(follow, [x], [PLAIN])


def test_a_graph_and_its_parts_refuse_mutation_by_every_way_in():
    graph = example()
    node = graph.nodes[0]
    with pytest.raises(AttributeError, match="frozen graphs do not change"):
        graph.outputs = ()
    with pytest.raises(TypeError, match="does not support item assignment"):
        node.inputs[0] = node.outputs[0]
    with pytest.raises(AttributeError, match="frozen graphs do not change"):
        node.outputs[0].tag.note = 1
    with pytest.raises(TypeError, match="does not support item assignment"):
        graph.clients[graph.inputs[0]] = ()
    assert not hasattr(graph, "replace")
    assert not hasattr(graph, "attach_feature")


def test_the_data_of_a_frozen_constant_cannot_be_changed():
    value = np.ones(3)
    frozen = FrozenConstant(pt.tensor_type("float64", (3,)), value)
    value[0] = 5.0
    assert frozen.data.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        frozen.data[0] = 5.0


def test_a_node_on_new_inputs_is_a_fresh_mutable_node():
    x = PLAIN("x")
    node = example().nodes[0]
    fresh = node.clone_with_new_inputs([x])
    assert not isinstance(fresh, FrozenApply)
    assert fresh.inputs == [x]
    assert fresh.op is node.op
    fresh.inputs[0] = PLAIN("y")
    fresh.outputs[0].name = "renamed"


def test_frozen_variables_copy_to_mutable_ones():
    x = example().inputs[0]
    assert type(x.clone("x")) is type(PLAIN())
    assert type(FrozenConstant(PLAIN, 2.0).clone()) is type(constant(2.0))


def test_frozen_tensors_are_tensors():
    x = pt.dmatrix("x")
    graph = freeze([x], pt.exp(x) * np.float32(2.0))
    for variable in (graph.inputs[0], graph.outputs[0], graph.outputs[0].owner.inputs[1]):
        assert isinstance(variable, pt.TensorVariable)
        assert variable.ndim == 2
    assert (graph.outputs[0] + 1.0).owner.inputs[0] is graph.outputs[0]


class Overwrite(Combine):
    """A sum that overwrites the first input."""

    destroy_map = {0: [0]}


def overwriting(weight=1.0):
    x = PLAIN("x")
    return [x], [Overwrite("a", weight)(follow(x), x), Overwrite("b", weight)(follow(x), x)]


def test_equal_nodes_at_different_positions_stay_apart_where_they_are_not_to_be_one():
    x = PLAIN("x")
    outputs = [combine(follow(x), follow(x))]
    apart = FrozenFunctionGraph.from_io([x], outputs, dedup_nodes=False)
    assert len(apart.nodes) == 3
    assert [node.position for node in apart.nodes] == [0, 1, 2]
    assert apart != FrozenFunctionGraph.from_io([x], outputs, dedup_nodes=True)


def test_graphs_whose_nodes_stay_apart_are_equal_if_they_are_alike():
    def build(name):
        x = PLAIN(name)
        return FrozenFunctionGraph.from_io([x], [combine(follow(x), follow(x))], dedup_nodes=False)

    first, second = build("x"), build("y")
    assert first == second
    assert hash(first) == hash(second)
    assert pickle.loads(pickle.dumps(first)) == first
    assert pickle.loads(pickle.dumps(first.nodes[1])) is first.nodes[1]


def test_a_graph_with_a_node_that_overwrites_keeps_equal_nodes_apart():
    inputs, outputs = overwriting()
    graph = freeze(inputs, *outputs)
    assert len(graph.nodes) == 4
    assert graph.outputs[0].owner.inputs[0] is not graph.outputs[1].owner.inputs[0]
    thawed = graph.unfreeze()
    first, second = [output.owner.inputs[0] for output in thawed.outputs]
    assert first is not second
    assert FrozenFunctionGraph.from_io(thawed.inputs, thawed.outputs) is graph
    inputs, outputs = overwriting()
    assert freeze(inputs, *outputs) is graph


def test_a_given_order_is_kept_by_pickling_and_thawing_back():
    x = PLAIN("x")
    left, right = follow(x), split(x)[0]
    out = combine(left, right)
    nodes = [right.owner, left.owner, out.owner]
    graph = FrozenFunctionGraph.from_toposort([x], [out], nodes)
    assert [node.op for node in graph.toposort()] == [node.op for node in nodes]
    assert graph != FrozenFunctionGraph.from_toposort([x], [out], [left.owner, right.owner, out.owner])
    assert [node.op for node in pickle.loads(pickle.dumps(graph)).nodes] == [node.op for node in nodes]
    fgraph, memo = graph.unfreeze(return_memo=True)
    again = FrozenFunctionGraph.from_toposort(fgraph.inputs, fgraph.outputs, [memo[n] for n in graph.nodes])
    assert again is graph


def test_an_order_that_is_none_is_refused_and_what_is_not_needed_is_left_out():
    x = PLAIN("x")
    inner = follow(x)
    out, other = combine(inner), split(x)[0]
    with pytest.raises(ValueError, match="comes before Follow"):
        FrozenFunctionGraph.from_toposort([x], [out], [out.owner, inner.owner])
    with pytest.raises(ValueError, match="comes before Follow"):
        FrozenFunctionGraph.from_toposort([x], [out], [out.owner])
    with pytest.raises(ValueError, match="1 of the 2 nodes"):
        FrozenFunctionGraph.from_toposort([x], [out], [inner.owner])
    graph = FrozenFunctionGraph.from_toposort([x], [out], [inner.owner, other.owner, out.owner])
    assert graph is FrozenFunctionGraph.from_io([x], [out], dedup_nodes=False)


def test_expressions_become_inputs_wherever_their_structure_is_found():
    x, y = PLAIN("x"), PLAIN("y")
    graph = FrozenFunctionGraph.from_structural_inputs(
        [follow(x), y], [combine(follow(x), follow(follow(x)), y)]
    )
    a, b = PLAIN("a"), PLAIN("b")
    assert graph == freeze([a, b], combine(a, follow(a), b))
    unused = FrozenFunctionGraph.from_structural_inputs([split(x)[0], y], [follow(y)])
    assert unused == freeze([a, b], follow(b))
    with pytest.raises(MissingInputError):
        FrozenFunctionGraph.from_structural_inputs([follow(x)], [combine(follow(x), x)])


def test_freezing_what_is_frozen_gives_the_same():
    graph = example()
    assert freeze(graph.inputs, *graph.outputs) is graph


def test_freezing_again_makes_no_node():
    x = PLAIN("x")
    out = combine(chain(x, 50), constant(3.0))
    graph = freeze([x], out)
    count, made = len(frozen_nodes._nodes), []
    original = frozen_nodes._nodes.add
    frozen_nodes._nodes.add = lambda key, new: made.append(new) or original(key, new)
    try:
        assert freeze([x], out) is graph
    finally:
        del frozen_nodes._nodes.add
    assert made == []
    assert len(frozen_nodes._nodes) == count


def test_the_uses_of_variables_are_known():
    graph = example()
    x, y = graph.inputs
    first, last = graph.nodes
    assert graph.apply_nodes == {first, last}
    assert graph.variables == {x, y, *first.outputs, *last.outputs, last.inputs[1]}
    assert graph.clients[x] == ((first, 0),)
    assert graph.clients[first.outputs[0]] == ((last, 0),)
    ((output, index),) = graph.clients[first.outputs[1]]
    assert (output.op, index) == (Output(1), 0)


def test_what_is_computed_from_a_graph_is_computed_once():
    graph, calls = example(), []
    assert graph.computed("a name of this test", lambda g: calls.append(g) or len(g.nodes)) == 2
    assert graph.computed("a name of this test", calls.append) == 2
    assert calls == [graph]


def test_binding_takes_a_map_too():
    x, y = PLAIN("x"), PLAIN("y")
    graph = freeze([x, y], combine(follow(x), y))
    (found,), memo = graph.bind({graph.inputs[0]: y, graph.inputs[1]: y}, return_memo=True)
    assert found.owner.inputs[1] is y
    assert memo[graph.outputs[0]] is found
    assert memo[graph.nodes[0]] is found.owner.inputs[0].owner
    middle = graph.nodes[0].outputs[0]
    (found,) = graph.bind({middle: x, graph.inputs[1]: y, graph.inputs[0]: x})
    assert found.owner.inputs == [x, y]
    with pytest.raises(KeyError, match="nothing is given for i1"):
        graph.bind({graph.inputs[0]: x})


def test_thawing_gives_fresh_nodes_that_freeze_to_the_same():
    graph = example()
    thawed = graph.unfreeze()
    thawed.check_integrity()
    assert thawed.freeze() == graph
    assert not {v for v in thawed.variables if isinstance(v, NominalVariable | FrozenConstant)}
    thawed.replace(thawed.outputs[1], thawed.inputs[0])
    assert graph == example()


def test_binding_computes_the_outputs_from_what_is_given():
    x, y = PLAIN("x"), PLAIN("y")
    found, _ = example().bind([follow(x), y])
    assert FunctionGraph([x, y], [found]).freeze().nodes[0].op == follow
    with pytest.raises(ValueError, match="2 inputs are needed, 1 were given"):
        example().bind([x])
    with pytest.raises(TypeError, match="convert it first"):
        example().bind([x, Floats("other")("z")])


def test_nodes_come_after_what_they_need():
    graph = example()
    assert [str(node.op) for node in graph.nodes] == ["Split", "Combine{label=c, weight=1.0}"]
    assert graph.toposort() == graph.nodes
    assert repr(graph) == "FrozenFunctionGraph(2 inputs, 2 nodes, 2 outputs)"


def test_pickling_gives_back_the_same_objects():
    graph = example()
    assert pickle.loads(pickle.dumps(graph)) == graph
    for item in (
        graph.outputs[0],
        graph.outputs[1],
        graph.nodes[1],
        graph.inputs[1],
        graph.nodes[1].inputs[1],
    ):
        assert pickle.loads(pickle.dumps(item)) is item


def test_a_pickle_is_the_same_graph_in_another_process(tmp_path):
    x = pt.dmatrix("x")
    tensors = freeze([x], pt.exp(x).sum(0) * np.array([-0.0, np.nan, 1.0]), pt.sum(x[np.arange(40)]))
    path = tmp_path / "graphs"
    path.write_bytes(pickle.dumps([example(), tensors]))
    program = """
import pickle, sys
import numpy as np, engine.tensor as pt
from tests.engine.graph.test_frozen import example, freeze
from engine.graph.reference import evaluate
plain, tensors = pickle.load(open(sys.argv[1], "rb"))
x = pt.dmatrix("renamed")
assert plain == example() and plain.outputs[0] is example().outputs[0]
again = freeze([x], pt.exp(x).sum(0) * np.array([-0.0, np.nan, 1.0]), pt.sum(x[np.arange(40)]))
assert tensors == again and tensors.outputs[0] is again.outputs[0]
print([v.tolist() for v in evaluate(tensors.inputs, tensors.outputs, [np.zeros((40, 3))])])
"""
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program, path],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        assert found.stdout.strip() == "[[-0.0, nan, 40.0], 0.0]"


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_graph_is_frozen_thawed_and_pickled(depth):
    x = PLAIN("x")
    out = chain(x, depth)
    graph = freeze([x], out)
    assert len(graph.nodes) == depth
    assert freeze([x], out) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert pickle.loads(pickle.dumps(graph.outputs[0])) is graph.outputs[0]
    assert len(graph.unfreeze().apply_nodes) == depth


def test_sharing_is_not_unfolded():
    out = x = PLAIN("x")
    for _ in range(200):
        out = combine(out, out)
    graph = freeze([x], out)
    assert len(graph.nodes) == 200
    assert len(pickle.dumps(graph)) < 50_000


@pytest.mark.parametrize("mode", ["NUMPY", "NUMBA", "FAST_COMPILE"])
def test_a_function_tells_zero_from_negative_zero(mode):
    x = pt.dscalar("x")
    compiled = function([x], [x / 0.0, x / -0.0], mode=mode)
    assert [float(value) for value in compiled(1.0)] == [math.inf, -math.inf]


def test_shapes_gradients_and_loops_are_made_of_frozen_variables():
    x = pt.dmatrix("x", shape=(2, 3))
    frozen = FrozenFunctionGraph.from_io([x], [pt.exp(x)])
    (given,), (found,) = frozen.inputs, frozen.outputs
    assert [length.data for length in pt.shape_tuple(found)] == [2, 3]
    assert engine.grad(pt.sum(found), given).type == x.type
    assert engine.gradient.pushforward(found, given, given).type == x.type
    assert (
        engine.scan(lambda row, unused: row, found, non_sequences=[given], return_updates=False).type
        == x.type
    )
