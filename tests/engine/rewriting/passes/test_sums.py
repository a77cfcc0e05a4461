import numpy as np
import pytest

import engine as pytensor
import engine.tensor as pt

X = np.arange(24.0).reshape(2, 3, 4) - 7.5


def test_sums_over_axes_one_after_the_other_are_one_sum(rewritten):
    x = pt.dtensor3("x")
    assert rewritten(x, pt.sum(pt.sum(x, axis=1), axis=0)).check_values(X).ops == ["Sum{axis=[0, 1]}"]
    assert rewritten(x, pt.sum(pt.sum(x, axis=0), axis=1)).check_values(X).ops == ["Sum{axis=[0, 2]}"]


def test_sums_that_round_in_between_stay_two(rewritten):
    x = pt.ftensor3("x")
    graph = rewritten(x, pt.sum(pt.sum(x, axis=1), axis=0)).check_values(X.astype("float32"))
    assert graph.ops == ["Sum{axis=[1]}", "Sum{axis=[0]}"]


@pytest.mark.parametrize("reduce", [pt.sum, pt.max, pt.min])
def test_reducing_axes_of_length_one_drops_the_axes(rewritten, dtype, reduce):
    x = pt.tensor("x", dtype=dtype, shape=(1, None, 1))
    graph = rewritten(x, reduce(x, axis=(0, 2))).check_values(X[:1, :, :1].astype(dtype))
    assert graph.ops == ["DimShuffle{order=[1]}"]


def test_a_sum_of_one_bool_is_an_integer(rewritten):
    x = pt.tensor("x", dtype="bool", shape=(1,))
    assert set(rewritten(x, pt.sum(x)).check_values(np.array([True])).ops) == {"cast", "DimShuffle{order=[]}"}


def test_reducing_axes_of_unknown_length_stays(rewritten):
    x = pt.dvector("x")
    assert rewritten(x, pt.max(x)).check_values(X[0, 0]).ops == ["Max{axis=[0]}"]


def test_constant_factors_and_signs_leave_a_sum(rewritten, dtype):
    x = pt.vector("x", dtype=dtype)
    values = X[0, 0].astype(dtype)
    assert rewritten(x, pt.sum(-x)).check_values(values).ops == ["Sum{axis=[0]}", "neg"]
    assert rewritten(x, pt.sum(x * 2.5)).check_values(values).ops == ["Sum{axis=[0]}", "mul"]
    assert rewritten(x, pt.sum(-0.5 * (2 * x))).check_values(values).ops == ["Sum{axis=[0]}", "neg"]


@pytest.mark.parametrize("factor", [np.inf, np.nan])
def test_infinite_factors_stay_because_a_sum_of_nothing_is_zero(rewritten, factor):
    x = pt.dvector("x")
    graph = rewritten(x, pt.sum(x * factor)).check_values(np.zeros(0))
    assert graph.ops == ["mul", "Sum{axis=[0]}"]


def test_factors_of_integers_stay_because_they_wrap(rewritten):
    x = pt.ivector("x")
    graph = rewritten(x, pt.sum(x * 3)).check_values(np.array([2**30, 5], "int32"))
    assert graph.ops == ["mul", "Sum{axis=[0]}"]


def test_a_sum_of_one_value_is_that_value_times_the_number_of_elements(rewritten, dtype):
    x, c = pt.tensor("x", dtype=dtype, shape=(2, 3)), pt.scalar("c", dtype=dtype)
    graph = rewritten([x, c], pt.sum(pt.second(x, c))).check_values(
        np.ones((2, 3), dtype), np.array(0.3, dtype)
    )
    assert graph.ops == ["mul"]


def test_a_sum_of_a_constant_over_an_unknown_length_counts_it(rewritten):
    x = pt.dvector("x")
    graph = (
        rewritten(x, pt.sum(pt.second(x, np.float64(2.5)))).check_values(np.ones(3)).check_values(np.ones(0))
    )
    assert graph.ops == ["Shape_i{i=0}", "cast", "mul"]


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_sum_of_a_variable_over_an_unknown_length_stays_because_it_may_be_empty(rewritten, value):
    x, c = pt.dvector("x"), pt.dscalar("c")
    graph = rewritten([x, c], pt.sum(pt.second(x, c))).check_values(np.zeros(0), np.array(value))
    assert "Sum{axis=[0]}" in graph.ops


def test_a_sum_over_one_axis_of_a_fill_of_both_stays(rewritten):
    x, c = pt.tensor("x", dtype="float64", shape=(2, 3)), pt.dscalar("c")
    graph = rewritten([x, c], pt.sum(pt.second(x, c), axis=0)).check_values(X[0, :2, :3], np.array(2.0))
    assert graph.ops[-1] == "Sum{axis=[0]}"


@pytest.mark.parametrize("reduce", [pt.sum, pt.max, pt.min])
def test_a_reduction_of_a_repeated_row_is_made_of_the_row(rewritten, reduce):
    row = pt.tensor("row", dtype="float64", shape=(4,))
    graph = rewritten(row, reduce(pt.alloc(row, 5, 4), axis=0)).check_values(X[0, 0])
    assert not any(op.startswith(("Alloc", "Sum", "Max", "Min")) for op in graph.ops)


def test_the_largest_of_perhaps_nothing_stays(rewritten):
    value, n = pt.dscalar("value"), pt.lscalar("n")
    assert "Max{axis=[0]}" in rewritten([value, n], pt.max(pt.alloc(value, n))).check_values(2.5, 3).ops


@pytest.mark.parametrize("reduce", [pt.prod, pt.max, pt.min, pt.all, pt.any])
def test_other_reductions_over_axes_one_after_the_other_are_one(rewritten, reduce):
    x = pt.dtensor3("x")
    graph = rewritten(x, reduce(reduce(x, axis=1), axis=1)).check_values(X / 7)
    assert [op for op in graph.ops if "axis" in op] == [f"{reduce.__name__.capitalize()}{{axis=[1, 2]}}"]


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.max, pt.min, pt.all, pt.any])
@pytest.mark.parametrize("kind", ["float64", "float32", "int8", "bool"])
def test_axes_of_length_one_need_no_reduction(rewritten, reduce, kind):
    x = pt.tensor("x", dtype=kind, shape=(1, None, 1))
    values = X[:1, :, :1].astype(kind)
    for axes in ((0,), (0, 2), (0, 1), (0, 1, 2)):
        graph = rewritten(x, reduce(x, axis=axes)).check_values(values)
        left = [op for op in graph.ops if "{axis=" in op]
        assert [op.split("=")[1] for op in left] == (["[0]}"] if 1 in axes else [])


def test_numbers_have_no_axis_to_reduce(rewritten):
    x = pt.dscalar("x")
    for reduce in (pt.sum, pt.prod, pt.max, pt.min):
        assert rewritten(x, reduce(x)).check_values(np.array(-2.5)).ops == []


@pytest.mark.parametrize("reduce", [pt.sum, pt.prod, pt.max, pt.min])
def test_a_reduction_over_no_axis_is_its_argument(rewritten, dtype, reduce):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    assert rewritten(x, reduce(x, axis=())).check_values(X[0].astype(dtype)).ops == []


def test_a_sum_of_bools_over_no_axis_is_of_integers(rewritten):
    x = pt.tensor("x", dtype="bool", shape=(None,))
    assert rewritten(x, pt.sum(x, axis=())).check_values(np.array([True, False])).ops == ["cast"]


def test_a_mode_may_keep_reductions_over_no_axis():
    x = pt.dmatrix("x")
    mode = pytensor.compile.mode.get_default_mode().excluding("local_cut_useless_reduce")
    total = pytensor.function([x], pt.sum(x, axis=()), mode=mode)
    assert [str(node.op) for node in total.maker.fgraph.toposort()] == ["Sum{axis=[]}"]
    np.testing.assert_array_equal(total(X[0]), X[0])


def test_axes_of_length_1_are_left_out_of_the_operands_of_a_loop(rewritten):
    row, x = pt.drow("row"), pt.dvector("x")
    for reduced in (pt.sum, pt.max):
        graph = rewritten([row, x], reduced(row * x, axis=0) + x).check_values(
            np.ones((1, 2)), np.array([1.0, 3])
        )
        assert graph.ops[-2:] == ["mul", "add"]
