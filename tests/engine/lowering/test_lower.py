"""Graphs become the expected kernels, nothing unneeded is computed, and lengths stay in registers."""

from __future__ import annotations

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import NO_REWRITES, Mode
from engine.errors import InconsistencyError, LoweringError
from engine.graph import Apply, Op
from engine.lowering.lower import Lowering
from engine.lowering.rules import rule_of
from tests.engine.lowering.lowered import kernels, lower


@pytest.fixture
def x():
    return pt.vector("x")


@pytest.fixture
def m():
    return pt.matrix("m")


def test_one_elementwise_node_is_one_kernel(x):
    assert kernels([x], [pt.exp(x)]) == ["elementwise exp: (float64) -> (float64), 1 loops"]


def test_what_only_its_length_is_asked_of_is_not_computed(x, m):
    e = pt.exp(pt.dot(m, x))
    assert kernels([x, m], [pt.shape_i(e, 0)]) == ["store"]


def test_lengths_are_computed_in_registers(m):
    size = pt.shape_i(m, 0) * pt.shape_i(m, 1) + 2 - pt.shape_i(m, 0)
    assert kernels([m], [m.reshape((size * 0 + pt.shape_i(m, 0), -1))]) == [
        "elementwise copy: (float64) -> (float64), 1 loops"
    ]


def test_a_transposed_matrix_that_is_flattened_is_copied_once_into_the_result(m):
    found = kernels([m], [m.T.flatten()])
    assert found == ["elementwise copy: (float64 strided) -> (float64), 2 loops"]
    values = np.arange(6.0).reshape(2, 3)
    f = engine.function([m], [m.T.reshape((-1, 2)), pt.exp(m.T.reshape((6, 1)))])
    same, exponential = f(values)
    np.testing.assert_array_equal(same, values.T.reshape(-1, 2))
    np.testing.assert_allclose(exponential, np.exp(values.T.reshape(6, 1)))


def test_what_one_reduction_reads_runs_in_its_loops(m):
    found = kernels([m], [pt.sum(pt.exp(m), axis=1)])
    assert len(found) == 1
    assert "exp" in found[0]


def test_what_something_else_reads_too_is_computed_once(m):
    e = pt.exp(m)
    assert len([k for k in kernels([m], [pt.sum(e), e]) if "exp" in k]) == 1
    assert len([k for k in kernels([m], [pt.sum(e), pt.max(e)]) if "exp" in k]) == 1


def test_what_runs_in_the_loops_of_a_reduction_gives_its_lengths_to_another(m):
    e = pt.exp(m)
    total = pt.dimshuffle(pt.sum(e), ("x",))
    found = kernels([m], [pt.second(pt.sum(e, axis=0), total), pt.second(pt.sum(e, axis=1), total)])
    assert len([k for k in found if "exp" in k]) == 1


def test_what_is_reduced_only_for_its_shape_is_computed_where_it_is_asked_for(m):
    e = pt.exp(m)
    length = pt.shape_i(pt.sum(e, axis=1), 0)
    assert len([k for k in kernels([m], [length, e]) if "exp" in k]) == 1


def test_a_transposed_matrix_is_multiplied_as_it_lies(m):
    assert not any("copy" in k for k in kernels([m], [pt.dot(m.T, m), pt.dot(m, m.T)]))


def test_a_view_copies_nothing_but_a_result(x, m):
    assert [k for k in kernels([x, m], [pt.sum(m.dimshuffle(1, "x", 0) + 1)]) if "copy" in k] == []
    assert len(kernels([x], [x.dimshuffle("x", 0)])) == 1
    assert len(kernels([x], [x, x])) == 2


def test_the_numbers_of_small_constants_of_one_element_are_in_the_kernel(x):
    lowering = lower([x], [x * 2.5 + pt.constant([1.5, 2.5])])
    assert [constant.data.tolist() for _, constant in lowering.constants] == [[1.5, 2.5]]
    assert lowering.data == []


def test_data_is_bound_by_its_number(x):
    first, second = np.arange(40.0), np.arange(50.0)
    lowering = lower([x], [pt.sum(x) * pt.constant(first), pt.sum(x) * pt.constant(second)])
    assert sorted(number for _, _, number in lowering.data) == [0, 1]
    assert lowering.constants == []


def test_data_that_was_not_described_is_refused(x):
    new = pt.constant(np.arange(40.0))
    node = (x * new).owner
    with pytest.raises(InconsistencyError, match="a rewrite made new data"):
        Lowering(rule_of, [x], [node], node.outputs, [pt.constant(np.arange(40.0) + 1)]).run()


def test_adding_to_zeros_copies_nothing(x):
    k = pt.lvector("k")
    add = pt.AdvancedIncSubtensor([0])
    assert len(kernels([x, k], [add.make_node(pt.zeros_like(x), x[k], k).outputs[0]])) == 2
    assert len(kernels([x, k], [add.make_node(x, x[k], k).outputs[0]])) == 2


def test_an_op_without_a_rule_is_named(x):
    class Unknown(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type.make_variable()])

    with pytest.raises(LoweringError, match=r"Unknown.*implement perform") as caught:
        lower([x], [Unknown()(x)])
    assert type(caught.value.op).__name__ == "Unknown"
    assert caught.value.backend == "numba"


def test_a_length_read_from_memory_begins_another_stage(x):
    k = pt.lvector("k")
    lowering = lower([x, k], [x.reshape((pt.sum(k), -1)) + 1])
    assert [step.stage for step in lowering.table.steps] == [0, 1]


def test_a_length_that_is_an_argument_is_read_at_once(x):
    n = pt.lscalar("n")
    assert [step.stage for step in lower([x, n], [x.reshape((n, -1)) + 1]).table.steps] == [0]


def test_equal_arithmetic_is_done_once(m):
    lowering = lower([m], [m.reshape((-1,)) + 1, m.reshape((-1,)) * 2, pt.exp(m)])
    products = [i.operands[1:] for i in lowering.table.arithmetic[0] if i.name == "MUL"]
    assert len(products) == len(set(products))


def test_a_length_that_a_type_knows_and_that_is_not_so_stops_the_program(x):
    claimed = pt.exp(x)
    claimed.type = claimed.type.clone(shape=(3,))
    f = engine.function([x], claimed, mode=Mode("numba", NO_REWRITES))
    with pytest.raises(ValueError, match="is known to be 3: found lengths"):
        f(np.ones(2))
    assert f(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_a_length_that_follows_from_the_inputs_types_is_not_checked_again():
    y = pt.tensor("y", "float64", (3,))
    found = lower([y], [pt.exp(y) + 1]).table.arithmetic.values()
    names = [instruction.name for stage in found for instruction in stage]
    assert names.count("SAME") == 1  # of the input
