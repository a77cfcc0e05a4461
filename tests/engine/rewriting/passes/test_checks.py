"""Checks of lengths part no loops, and no check is lost."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.tensor.checks import CheckAndRaise, SpecifyShape, assert_op, specify_shape

V = np.arange(5.0)


def test_a_check_of_a_result_is_one_of_what_it_is_computed_from(rewritten):
    x = pt.dvector("x")
    graph = rewritten(x, specify_shape(pt.exp(x) + 1.0, (5,))).check_values(V)
    assert graph.ops == ["SpecifyShape", "exp", "add"]


def test_loops_around_a_check_are_one():
    x, y = pt.dvector("x"), pt.dmatrix("y")
    f = engine.function([x, y], pt.sqrt(specify_shape(pt.exp(y) + x, (2, 5))))
    assert sum("Composite" in str(node.op) for node in f.maker.fgraph.apply_nodes) == 1
    assert f(V, np.ones((2, 5))).shape == (2, 5)
    for wrong in (np.ones((3, 5)), np.ones((2, 4))):
        with pytest.raises((AssertionError, ValueError)):
            f(V[: wrong.shape[1]], wrong)


def test_a_result_that_is_used_elsewhere_is_computed_once(rewritten):
    x = pt.dvector("x")
    value = pt.exp(x)
    assert rewritten(x, [specify_shape(value, (5,)), value]).ops.count("exp") == 1


def test_a_check_of_a_result_with_an_axis_of_length_1_stays(rewritten):
    x = pt.tensor("x", shape=(1,))
    n = pt.lscalar("n")
    graph = rewritten([x, n], specify_shape(pt.exp(x), (n,))).check_values(V[:1], np.array(1))
    assert graph.ops[-1] == "SpecifyShape"


def test_checks_that_follow_one_another_are_one(rewritten):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    both = specify_shape(specify_shape(x, (None, n)), (2, None))
    assert rewritten([x, n], both).check_values(np.ones((2, 3)), np.array(3)).ops == ["SpecifyShape"]
    twice = specify_shape(specify_shape(x, (None, n)), (2, n))
    assert rewritten([x, n], twice).check_values(np.ones((2, 3)), np.array(3)).ops == ["SpecifyShape"]


def test_checks_of_an_axis_that_may_differ_are_two():
    x, n, m = pt.dvector("x"), pt.lscalar("n"), pt.lscalar("m")
    f = engine.function([x, n, m], specify_shape(specify_shape(x, (n,)), (m,)))
    assert sum(isinstance(node.op, SpecifyShape) for node in f.maker.fgraph.apply_nodes) == 2
    for n_due, m_due in ((5, 4), (4, 5)):
        with pytest.raises(AssertionError, match="Got shape"):
            f(V, n_due, m_due)


def test_a_check_of_a_tensors_own_length_is_dropped(rewritten):
    x = pt.dvector("x")
    assert rewritten(x, specify_shape(x, (x.shape[0],))).check_values(V).ops == []


def test_a_check_of_a_tensor_with_a_written_part_is_one_of_the_tensor(rewritten):
    x, y = pt.dvector("x"), pt.dvector("y")
    for written in (x[1:3].set(y), x[1:3].inc(y)):
        graph = rewritten([x, y], specify_shape(written, (5,))).check_values(V, V[:2], exact=True)
        assert graph.ops[0] == "SpecifyShape"
        f = engine.function([x, y], specify_shape(written, (5,)))
        with pytest.raises((AssertionError, ValueError)):
            f(V[:4], V[:2])


def test_a_tensor_with_a_written_part_that_is_used_elsewhere_is_written_once(rewritten):
    x = pt.dvector("x")
    written = x[1:3].set(0.0)
    graph = rewritten(x, [specify_shape(written, (5,)), written]).check_values(V, exact=True)
    assert sum(op.startswith("SetSubtensor") for op in graph.ops) == 1


def test_a_row_of_a_checked_product_is_the_product_of_a_row(rewritten):
    A, B, n = pt.dmatrix("A"), pt.dmatrix("B"), pt.lscalar("n")
    values = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.array(4)
    row = specify_shape(pt.dot(A, B), (None, n))[1]
    graph = rewritten([A, B, n], row).check_values(*values)
    assert [op.partition("{")[0] for op in graph.ops] == ["Subtensor", "Dot", "SpecifyShape"]
    with pytest.raises(AssertionError, match="Got shape"):
        engine.function([A, B, n], row)(*values[:2], 5)


@pytest.mark.parametrize("index", [(1,), (-1, 0), (slice(None), 1), (slice(None), 1, 1), (0, 1, 2)])
@pytest.mark.parametrize("wrong", [None, 0, 1, 2])
def test_all_lengths_of_what_is_indexed_are_compared(index, wrong):
    x, lengths = pt.dtensor3("x"), [pt.lscalar() for _ in range(3)]
    f = engine.function([x, *lengths], specify_shape(x, lengths)[index])
    value = np.arange(24.0).reshape(2, 3, 4)
    if wrong is None:
        np.testing.assert_array_equal(f(value, 2, 3, 4), value[index])
        return
    with pytest.raises(AssertionError, match="Got shape"):
        f(value, *[n + (axis == wrong) for axis, n in enumerate(value.shape)])


def test_a_check_of_what_is_sliced_or_used_elsewhere_stays_before_the_index(rewritten):
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    checked = specify_shape(x, (None, n))
    values = np.ones((2, 3)), np.array(3)
    assert rewritten([x, n], checked[:1]).check_values(*values).ops[0] == "SpecifyShape"
    assert rewritten([x, n], [checked[0], checked]).check_values(*values).ops.count("SpecifyShape") == 1


def test_asserts_are_removed_where_a_mode_names_the_rewrite():
    x, p = pt.dvector("x"), pt.scalar("p", dtype="bool")
    mode = engine.compile.mode.get_default_mode()
    checked = assert_op(x, p)
    unchecked = engine.function([x, p], checked, mode=mode.including("local_remove_all_assert"))
    np.testing.assert_array_equal(unchecked(V, False), V)
    for safe in (mode, mode.excluding("unsafe"), mode.including("local_remove_useless_assert")):
        with pytest.raises(AssertionError):
            engine.function([x, p], checked, mode=safe)(V, False)


def test_checks_by_users_own_exceptions_are_no_asserts():
    x, p = pt.dvector("x"), pt.scalar("p", dtype="bool")
    mode = engine.compile.mode.get_default_mode().including("local_remove_all_assert")
    f = engine.function([x, p], CheckAndRaise(KeyError, "no")(x, p), mode=mode)
    with pytest.raises(KeyError):
        f(V, False)
