import numpy as np
import pytest

import engine
import engine.tensor as pt


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x + (-0.0),
        lambda x: -0.0 + x,
        lambda x: x - 0.0,
        lambda x: x * 1,
        lambda x: 1.0 * x,
        lambda x: x / 1,
        lambda x: x**1,
        lambda x: pt.neg(-x),
        lambda x: pt.identity(x),
        lambda x: pt.cast(x, x.dtype),
    ],
)
def test_what_changes_no_number_is_dropped(rewritten, dtype, special, build):
    x = pt.vector("x", dtype=dtype)
    graph = rewritten(x, build(x)).check_values(special, exact=True)
    assert graph.ops == []


def test_adding_zero_stays_because_it_turns_negative_zero_into_zero(rewritten, dtype, special):
    x = pt.vector("x", dtype=dtype)
    graph = rewritten(x, x + 0.0).check_values(special, exact=True)
    assert graph.ops == ["add"]


def test_subtracting_negative_zero_stays(rewritten, dtype, special):
    x = pt.vector("x", dtype=dtype)
    assert rewritten(x, x - (-0.0)).check_values(special, exact=True).ops == ["sub"]


def test_a_negative_number_that_is_subtracted_is_added(rewritten, dtype, special):
    x = pt.vector("x", dtype=dtype)
    assert rewritten(x, x - (-5.0)).check_values(special, exact=True).ops == ["add"]


@pytest.mark.parametrize("build", [lambda a, x: -a + x, lambda a, x: x + -a, lambda a, x: x - (-a)])
def test_the_sign_of_what_is_repeated_is_the_operations(rewritten, build):
    a, x = pt.dscalar("a"), pt.dvector("x")
    graph = rewritten([a, x], build(a, x)).check_values(2.5, np.array([1.0, -3.0]), exact=True)
    assert "neg" not in graph.ops


def test_adding_zero_to_what_is_never_negative_zero_is_dropped(rewritten, dtype, special):
    x = pt.vector("x", dtype=dtype)
    graph = rewritten(x, 0.0 + abs(x)).check_values(special, exact=True)
    assert graph.ops == ["abs"]


def test_adding_zero_to_a_product_of_matrices_is_dropped(rewritten):
    x, y, v = pt.dmatrix("x"), pt.dmatrix("y"), pt.dvector("v")
    zeros = pt.as_tensor(np.zeros((1, 1)))
    values = np.array([[1.0, -2.0], [-0.0, 3.0]]), np.array([[0.0, -0.0], [2.0, -1.0]]), np.array([-0.0, 4.0])
    for product in (zeros + x @ y, x @ v + 0.0, 0.0 + v @ v):
        graph = rewritten([x, y, v], product).check_values(*values, exact=True)
        assert "add" not in graph.ops


@pytest.mark.parametrize("n", [1, 2, 8, 40])
@pytest.mark.parametrize("zeros", [0.0, -0.0])
def test_a_product_whose_terms_are_all_zeros_is_what_adding_zero_makes_of_it(rewritten, n, zeros):
    x, y, v = pt.dmatrix("x"), pt.dmatrix("y"), pt.dvector("v")
    values = np.full((3, n), -1.0), np.full((n, 4), zeros), np.full(n, zeros)
    products = [0.0 + x @ y, x @ v + 0.0, 0.0 + v @ y, 0.0 - v @ -v, 0.0 + y @ -y.T]
    for product in products:
        rewritten([x, y, v], product).check_values(*values, exact=True)
    for found in engine.function([x, y, v], products)(*values):
        assert not np.any(found)
        assert not np.any(np.signbit(found))


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 3)])
def test_a_product_over_a_known_length_of_1_keeps_the_sum_with_zero(rewritten, shape):
    x, y = pt.dmatrix("x", shape=shape), pt.dmatrix("y", shape=(shape[1], 2))
    values = np.full(shape, -1.0), np.zeros((shape[1], 2))
    rewritten([x, y], 0.0 + x @ y).check_values(*values, exact=True)
    assert not np.any(np.signbit(engine.function([x, y], 0.0 + x @ y)(*values)))


def test_adding_zero_to_integers_and_bools_is_dropped(rewritten):
    x, b = pt.lvector("x"), pt.vector("b", dtype="bool")
    graph = rewritten([x, b], [x + 0, 0 - x, b + False])
    graph.check_values(np.array([0, -3, 2**62]), np.array([True, False]))
    assert graph.ops == ["neg"]


def test_a_neutral_constant_of_a_wider_dtype_leaves_a_cast(rewritten):
    x = pt.ivector("x")
    graph = rewritten(x, x * np.float64(1)).check_values(np.array([1, -5], "int32"), exact=True)
    assert graph.ops == ["cast"]


def test_multiplying_by_zero_stays_because_of_infinity_and_nan(rewritten, dtype, special):
    x = pt.vector("x", dtype=dtype)
    assert rewritten(x, x * 0.0).check_values(special, exact=True).ops == ["mul"]


def test_a_vector_of_ones_that_gives_the_shape_repeats_the_number(rewritten):
    x = pt.dscalar("x")
    graph = rewritten(x, x * np.ones(3)).check_values(np.array(2.5), exact=True)
    assert graph.ops[-1] == "Alloc"


@pytest.mark.parametrize("divisor", [2.0, -4.0, 0.125, -1.0])
def test_dividing_by_a_power_of_two_becomes_a_product_without_rounding(rewritten, dtype, special, divisor):
    x = pt.vector("x", dtype=dtype)
    graph = rewritten(x, x / divisor).check_values(special, exact=True)
    assert "true_div" not in graph.ops


@pytest.mark.parametrize("divisor", [3.0, 0.0, np.inf, np.nan, 2.0**-126])
def test_dividing_by_another_number_stays_a_division(rewritten, dtype, special, divisor):
    x = pt.vector("x", dtype=dtype)
    assert rewritten(x, x / divisor).check_values(special, exact=True).ops == ["true_div"]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x, y: x + (-y), ["sub"]),
        (lambda x, y: -x + y, ["sub"]),
        (lambda x, y: x - (-y), ["add"]),
        (lambda x, y: -x * -y, ["mul"]),
        (lambda x, y: -x / -y, ["true_div"]),
        (lambda x, y: -x * 3.0 + y, ["mul", "add"]),
        (lambda x, y: -x / 3.0 + y, ["true_div", "add"]),
        (lambda x, y: 3.0 / -x + y, ["true_div", "add"]),
        (lambda x, y: -(x * 3.0) + y, ["mul", "add"]),
        (lambda x, y: -(3.0 / x) + y, ["true_div", "add"]),
        (lambda x, y: x * -1 + y, ["sub"]),
    ],
)
def test_signs_move_to_where_they_cost_nothing(rewritten, dtype, special, build, expected):
    x, y = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype)
    left, right = np.meshgrid(special, special)
    graph = rewritten([x, y], build(x, y)).check_values(left, right, exact=True)
    assert graph.ops == expected


def test_the_negative_of_a_difference_stays_because_of_the_sign_of_zero(rewritten, dtype, special):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    graph = rewritten([x, y], -(x - y)).check_values(special, special[::-1].copy(), exact=True)
    assert graph.ops == ["sub", "neg"]


def test_constant_factors_meet_where_one_is_a_power_of_two(rewritten, dtype):
    x = pt.vector("x", dtype=dtype)
    values = np.array([1.5, -0.1, 0.0, -0.0, np.inf, np.nan], dtype)
    assert rewritten(x, -0.5 * (2.0 * x)).check_values(values, exact=True).ops == ["neg"]
    assert rewritten(x, (x * 0.5) * 0.3).check_values(values, exact=True).ops == ["mul"]
    assert rewritten(x, (x * 0.1) * 0.3).check_values(values, exact=True).ops == ["mul", "mul"]


def test_one_over_x_is_a_reciprocal(rewritten, dtype, special):
    x = pt.vector("x", dtype=dtype)
    assert rewritten(x, 1 / x).check_values(special, exact=True).ops == ["reciprocal"]


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [(2, ["sqr"]), (-1, ["reciprocal"]), (0, ["second"]), (2.5, ["pow"]), (-17, ["pow"])],
)
def test_powers_with_a_constant_exponent(rewritten, dtype, special, exponent, expected):
    x = pt.vector("x", dtype=dtype)
    graph = rewritten(x, x**exponent).check_values(special)
    assert graph.ops == expected


def test_a_square_root_written_as_a_power(rewritten, dtype, special):
    x = pt.vector("x", dtype=dtype)
    graph = rewritten(x, x**0.5).check_values(special[special != -np.inf])
    assert graph.ops == ["sqrt"]


def test_negative_powers_of_integers_are_left_to_raise(rewritten):
    x = pt.lvector("x")
    assert rewritten(x, x**-1).ops == ["pow"]


def test_squares_of_integers_keep_their_dtype(rewritten):
    x = pt.ivector("x")
    assert rewritten(x, x**2).check_values(np.array([3, -4], "int32")).ops == ["sqr"]


def test_casts_that_lose_nothing_in_between_are_one(rewritten):
    x = pt.ivector("x")
    graph = rewritten(x, pt.cast(pt.cast(x, "float64"), "int64")).check_values(np.array([3, -4], "int32"))
    assert graph.ops == ["cast"]
    assert rewritten(x, pt.cast(pt.cast(x, "int64"), "int32")).ops == []


@pytest.mark.parametrize(
    ("inner", "outer"), [("float32", "int64"), ("bool", "int64"), ("float32", "float64")]
)
def test_casts_that_lose_something_in_between_stay(rewritten, inner, outer):
    x = pt.lvector("x")
    values = np.array([2**25 + 1, -1, 0])
    graph = rewritten(x, pt.cast(pt.cast(x, inner), outer)).check_values(values, exact=True)
    assert graph.ops == ["cast", "cast"]


@pytest.mark.parametrize("operation", [pt.mul, pt.true_div])
@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("value", [1.1, -0.0, np.inf, np.nan])
def test_a_truth_value_goes_into_the_branch_that_is_not_0(rewritten, operation, truth, condition, value):
    c, p = pt.scalar("c", dtype="bool"), pt.scalar("p", dtype="bool")
    a = pt.fscalar("a")
    chosen = pt.where(c, pt.constant(np.float64(0.0)), a)
    graph = rewritten([c, p, a], operation(chosen, p))
    assert graph.ops[-1] == "where"
    given = [np.array(condition), np.array(truth), np.array(value, "float32")]
    if condition:  # nothing is computed there
        assert graph.evaluate(*given) == 0
    else:
        graph.check_values(*given, exact=True)


def test_a_truth_value_beside_other_branches_stays(rewritten):
    c, p, a = pt.scalar("c", dtype="bool"), pt.scalar("p", dtype="bool"), pt.dscalar("a")
    for chosen in (pt.where(c, 1.0, a), pt.where(c, a, 2.0)):
        graph = rewritten([c, p, a], chosen * p).check_values(np.array(True), np.array(False), 2.5)
        assert graph.ops[-1] == "mul"
