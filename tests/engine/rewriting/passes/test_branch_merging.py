import numpy as np
import pytest

import engine.tensor as pt

ELEMENTWISE = [
    *(pt.add, pt.sub, pt.mul, pt.true_div, pt.floor_div, pt.minimum, pt.maximum),
    *(pt.lt, pt.gt, pt.le, pt.ge, pt.eq, pt.neq),
]


def operands(dtype):
    return [pt.vector("c", dtype="bool"), *(pt.vector(name, dtype=dtype) for name in "abxy")]


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_two_choices_by_one_condition_are_one(rewritten, special, op):
    c, a, b, x, y = operands(special.dtype.name)
    graph = rewritten([c, a, b, x, y], op(pt.where(c, a, b), pt.where(c, x, y)))
    values = (
        np.arange(special.size) % 3 == 0,
        special,
        special[::-1],
        np.roll(special, 3),
        np.roll(special, 5),
    )
    assert graph.check_values(*values, exact=True).ops.count("where") == 1


@pytest.mark.parametrize("op", [pt.and_, pt.or_, pt.xor, pt.add, pt.floor_div])
def test_whole_numbers_are_chosen_once_too_and_zero_divides_nothing(rewritten, op):
    c, a, b, x, y = operands("int32")
    graph = rewritten([c, a, b, x, y], op(pt.where(c, a, b), pt.where(c, x, y)))
    values = np.array([[7, -3, 0, 2**31 - 1], [1, 2, 3, 4], [2, 5, -1, 1], [0, -4, 0, 2]], "int32")
    graph.check_values(np.array([True, False, True, True]), *values, exact=True)
    assert graph.ops.count("where") == 1


def test_values_get_the_dtype_of_their_choice_before(rewritten):
    c, n, x = pt.vector("c", dtype="bool"), pt.vector("n", dtype="int8"), pt.fvector("x")
    graph = rewritten([c, n, x], pt.where(c, n, x) * pt.where(c, n, x + 1))
    values = np.array([True, False]), np.array([100, 3], "int8"), np.array([0.5, 1.5], "float32")
    assert graph.check_values(*values).evaluate(*values)[0] == 10_000


def test_conditions_that_broadcast_keep_the_shape(rewritten):
    c, x, y = pt.matrix("c", dtype="bool"), pt.dvector("x"), pt.dvector("y")
    graph = rewritten([c, x, y], pt.where(c, x, y) + pt.where(c, y, 1.0))
    graph.check_values(np.array([[True, False]] * 3), np.array([1.0, 2.0]), np.array([3.0, 4.0]))


def test_choices_that_are_used_elsewhere_and_other_conditions_stay(rewritten):
    c, d, x, y = (pt.dvector(name) for name in "cdxy")
    first = pt.where(c, x, y)
    values = np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.array([2.0, 3.0]), np.array([5.0, 7.0])
    shared = rewritten([c, d, x, y], [first + pt.where(c, y, x), first])
    assert shared.check_values(*values).ops.count("where") == 2
    other = rewritten([c, d, x, y], first + pt.where(d, y, x))
    assert other.check_values(*values).ops.count("where") == 2


def test_powers_cost_more_than_a_choice(rewritten):
    c, x, y = (pt.dvector(name) for name in "cxy")
    graph = rewritten([c, x, y], pt.where(c, x, y) ** pt.where(c, y, x))
    assert graph.ops == ["where", "where", "pow"]


def test_gradients_flow_through_merged_choices():
    c, x, y = (pt.dvector(name) for name in "cxy")
    total = pt.sum(pt.where(c, x, y) * pt.where(c, y, 2.0))
    values = {c: np.array([1.0, 0.0]), x: np.array([3.0, 4.0]), y: np.array([5.0, 6.0])}
    slopes = [pt.grad(total, v).eval(values, on_unused_input="ignore") for v in (x, y)]
    np.testing.assert_array_equal(slopes, [[5.0, 0.0], [3.0, 2.0]])
