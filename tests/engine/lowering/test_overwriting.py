"""Nothing in a program reads overwritten memory later, and such memory belongs to nobody else."""

import pytest

import engine.tensor as pt
from engine.graph.traversal import io_toposort
from engine.inner.from_graph import OpFromGraph, inlined
from engine.lowering.lower import Lowering
from engine.lowering.overwriting import overwriting_nodes
from engine.lowering.rules import rule_of
from engine.tensor.slicing import IncSubtensor

OVERWRITE = IncSubtensor(["i"], set_instead_of_inc=True, inplace=True)


@pytest.fixture
def x():
    return pt.dvector("x")


def allowed(inputs, outputs, order=(), destroyable=()):
    nodes = [*order, *(node for node in io_toposort(inputs, outputs) if node not in order)]
    return [
        node in overwriting_nodes(nodes, inputs, outputs, destroyable)
        for node in nodes
        if node.op.destroy_map
    ]


def test_what_nothing_reads_afterwards_is_overwritten(x):
    y = pt.exp(x)
    assert allowed([x], [OVERWRITE(OVERWRITE(y, 1.0, 0), 2.0, 1)]) == [True, True]


def test_an_input_only_if_it_is_given_up(x):
    changed = OVERWRITE(x[1:], 1.0, 0)
    assert allowed([x], [changed]) == [False]
    assert allowed([x], [changed], destroyable=[x]) == [True]


def test_what_is_read_or_returned_later_is_copied(x):
    y = pt.exp(x)
    changed = OVERWRITE(y, 1.0, 0)
    reading = pt.tanh(y[::-1])
    assert allowed([x], [changed, reading]) == [False]
    assert allowed(
        [x], [changed, reading], order=[y.owner, reading.owner.inputs[0].owner, reading.owner]
    ) == [True]
    assert allowed([x], [changed, y[1:]]) == [False]


def test_what_the_node_reads_itself_is_copied(x):
    y = pt.exp(x)
    assert allowed([x], [OVERWRITE(y, y[1], 0)]) == [False]


def test_constants_are_copied():
    assert allowed([], [OVERWRITE(pt.constant([1.0, 2.0]), 1.0, 0)]) == [False]


def test_outputs_of_an_op_that_share_memory_are_not_overwritten_under_each_other(x):
    inner = pt.dvector("inner")
    op = OpFromGraph([inner], [pt.exp(inner), pt.exp(inner)[::-1], inner])
    same, turned, passed = op(x)
    outputs = [OVERWRITE(same, turned[0], 0), OVERWRITE(passed, 1.0, 0)]
    nodes, flat = inlined(io_toposort([x], outputs), [x], outputs)
    assert overwriting_nodes(nodes, [x], flat) == frozenset()


def summaries(inputs, outputs):
    nodes = io_toposort(inputs, outputs)
    lowering = Lowering(rule_of, inputs, nodes, outputs, [])
    lowering.run()
    return [step.kernel.summary for step in lowering.table.steps], lowering.table


def test_a_change_in_place_is_one_kernel_in_the_array_that_is_returned(x):
    kernels, table = summaries([x], [OVERWRITE(OVERWRITE(pt.exp(x), 1.0, 0), 2.0, 1)])
    assert [kernel.split()[0] for kernel in kernels] == ["elementwise", "set", "set"]
    assert [buffer.result for buffer in table.buffers] == [0]


def test_a_reduction_reads_before_its_input_is_overwritten(x):
    y = pt.exp(x)
    product = pt.tanh(y)
    total = pt.sum(product)
    changed = OVERWRITE(y, 1.0, 0)
    nodes = [y.owner, product.owner, *io_toposort([x, y], [changed]), total.owner]
    lowering = Lowering(rule_of, [x], nodes, [changed, total], [])
    lowering.run()
    kernels = [step.kernel.summary.split()[0] for step in lowering.table.steps]
    assert kernels == ["elementwise", "sum", "set"]


def test_a_number_is_loaded_before_it_is_overwritten():
    k = pt.lvector("k")
    y = k * 2
    n = y[0]
    changed = OVERWRITE(y, 7, 0)
    outputs = [pt.zeros(n), changed]
    _, table = summaries([k], outputs)
    change = table.steps[-1]
    loads = [stage for stage, code in table.arithmetic.items() for row in code if row.name == "LOAD64"]
    assert change.stage >= max(loads) > 0
