"""Reductions over any dims of any operand give what numpy gives, and sums are as exact as numpy's."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from engine.lowering.kernels.column_reduction import TILE, TOGETHER
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.kernels.row_reduction import BLOCK, PART, PARTS
from engine.lowering.kernels.row_sums import ROW_PART
from engine.lowering.loops import Loop, walk
from engine.lowering.statements import Statement
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import EMPTY_REDUCTION, NEGATIVE_POWER, OK

AXES = [
    (rank, axes)
    for rank in range(4)
    for count in range(rank + 1)
    for axes in combinations(range(rank), count)
]
KINDS = [
    *product(("sum", "prod", "max", "min"), ("float64", "float32", "int64", "int8", "uint32", "bool")),
    ("all", "bool"),
    ("any", "bool"),
]
NUMPY = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "all": np.all, "any": np.any}


def simple(kind, dtype, rank, axes, accumulator=None, result=None, strided=False):
    operand = NestOperand(dtype, (False,) * rank, strided)
    accumulator = accumulator or dtype
    return reduction(kind, [operand], [], ("input", 0), rank, axes, accumulator, result or accumulator)


def reduced(run, kernel, inputs, shape, axes, dtype):
    kept = tuple(n for d, n in enumerate(shape) if d not in axes)
    output = np.full(kept, 77, dtype)
    status = run(kernel, inputs, [output], shape)
    return status, output


SHAPES = {
    0: [()],
    1: [(0,), (1,), (7,), (BLOCK + 13,), (PARTS * PART + 13,)],
    2: [(3, 5), (0, 4), (4, 0), (9, TILE + 3), (300, 17), (6, 2 * ROW_PART + 3)],
}
SHAPES[3] = [(2, 3, 4), (5, 0, 2), (1, 1, 1), (3, 20, 11)]


@pytest.mark.parametrize("length", [ROW_PART - 1, ROW_PART, 3 * ROW_PART + 90])
@pytest.mark.parametrize("rows", [1, PARTS - 1, PARTS, PARTS + 1, 3 * PARTS])
def test_long_rows_are_summed_each_for_itself(run, rows, length):
    """Every element is a power of two, or a NaN, so sums in any order are exact."""
    kernel = simple("sum", "float32", 2, (1,), "float64", "float32")
    x = np.exp2(np.random.default_rng(2).integers(0, 6, size=(rows, length))).astype(np.float32)
    x[rows // 2, length // 3] = np.nan
    status, found = reduced(run, kernel, [x], x.shape, (1,), "float32")
    assert status == OK
    np.testing.assert_array_equal(found, x.sum(axis=1, dtype=np.float64).astype(np.float32))


@pytest.mark.parametrize("rest", [0, 1, BLOCK, PART])
def test_every_element_of_a_long_array_is_summed_once(run, rest):
    kernel = simple("sum", "float32", 1, (0,), "float64", "float64")
    length = 2 * PARTS * PART + rest
    x = np.random.default_rng(3).integers(0, 1000, size=length).astype(np.float32)
    status, found = reduced(run, kernel, [x], x.shape, (0,), "float64")
    assert (status, found) == (OK, x.sum(dtype=np.float64))


@pytest.mark.parametrize(("rank", "axes"), AXES)
def test_a_sum_over_any_axes_of_a_contiguous_array(run, rank, axes):
    kernel = simple("sum", "float64", rank, axes)
    for shape in SHAPES[rank]:
        x = np.random.default_rng(1).normal(size=shape)
        status, found = reduced(run, kernel, [x], shape, axes, "float64")
        assert status == OK
        np.testing.assert_allclose(found, x.sum(axis=axes), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("rank", "axes"), [(rank, axes) for rank, axes in AXES if rank])
def test_a_sum_over_any_axes_of_a_strided_array(run, rank, axes):
    kernel = simple("sum", "float64", rank, axes, strided=True)
    for shape in SHAPES[rank]:
        base = np.random.default_rng(2).normal(size=tuple(2 * n for n in reversed(shape)))
        x = base.T[(slice(None, None, -2),) * rank]
        assert x.shape == shape
        status, found = reduced(run, kernel, [x], shape, axes, "float64")
        assert status == OK
        np.testing.assert_allclose(found, x.sum(axis=axes), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("rank", "axes"), [(rank, axes) for rank, axes in AXES if rank == 3])
def test_statements_over_broadcast_operands_are_fused_in_front(run, rank, axes):
    operands = [
        NestOperand("float64", (False, False, False)),
        NestOperand("float64", (True, False, True)),
        NestOperand("float64", (False, True, True), strided=True),
        NestOperand("float64", (True, True, True)),
    ]
    body = [
        Statement("exp", (("input", 3),), "float64"),
        Statement("mul", (("input", 1), ("input", 2)), "float64"),
        Statement("sub", (("input", 0), ("value", 1)), "float64"),
        Statement("mul", (("value", 2), ("value", 0)), "float64"),
    ]
    kernel = reduction("sum", operands, body, ("value", 3), rank, axes, "float64", "float64")
    source = np.random.default_rng(3)
    for shape in ((3, 4, 5), (2, 1, 40), (3, 0, 2), (0, 2, 3)):
        x, scale = source.normal(size=shape), source.normal(size=())
        row, column = source.normal(size=shape[1]), source.normal(size=2 * shape[0])[::2]
        views = [row[None, :, None], column[:, None, None], scale[None, None, None]]
        inputs = [x, *(np.broadcast_to(view, shape) for view in views)]
        status, found = reduced(run, kernel, inputs, shape, axes, "float64")
        assert status == OK
        expected = ((x - inputs[1] * inputs[2]) * np.exp(scale)).sum(axis=axes)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_a_value_that_no_reduced_dim_changes_counts_for_each_element(run, axes):
    kernel = reduction(
        "sum", [NestOperand("float64", (True, True))], [], ("input", 0), 2, axes, "float64", "float64"
    )
    x = np.broadcast_to(np.array(0.5), (6, 10))
    status, found = reduced(run, kernel, [x], (6, 10), axes, "float64")
    assert status == OK
    np.testing.assert_array_equal(found, x.sum(axis=axes))


@pytest.mark.parametrize("axes", [(0,), (1,)])
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_every_kind_of_every_dtype_along_rows_and_columns(run, kind, dtype, axes):
    kernel = simple(kind, dtype, 2, axes)
    source = np.random.default_rng(4)
    for shape in ((6, 19), (19, 6), (1, 1)):
        values = source.integers(-3, 4, size=shape)
        x = (values > -2) if dtype == "bool" else values.astype(dtype)
        status, found = reduced(run, kernel, [x], shape, axes, dtype)
        assert status == OK
        expected = NUMPY[kind](x, axis=axes, **({"dtype": dtype} if kind in ("sum", "prod") else {}))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_not_a_number_passes_through_max_and_min(run, kind, axes):
    kernel = simple(kind, "float64", 2, axes)
    for position in ((0, 0), (3, 8), (5, 18)):
        x = np.random.default_rng(5).normal(size=(6, 19))
        x[position] = np.nan
        x[1, 1] = np.inf
        status, found = reduced(run, kernel, [x], x.shape, axes, "float64")
        assert status == OK
        np.testing.assert_array_equal(found, NUMPY[kind](x, axis=axes))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_special_values_count_at_every_position_of_a_long_row(run, kind, dtype):
    kernel = simple(kind, dtype, 1, (0,))
    for size in (1, 2, 5, 16, 61, BLOCK + 7, PARTS * PART + 7):
        for position in {0, 1, size // 2, size - 2, size - 1} & set(range(size)):
            for special in (np.nan, np.inf, -np.inf):
                x = np.linspace(0.5, 1.5, size).astype(dtype)
                x[position] = special
                status, found = reduced(run, kernel, [x], x.shape, (0,), dtype)
                assert status == OK
                np.testing.assert_allclose(found, NUMPY[kind](x), rtol=1e-4)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_reduced_is_the_neutral_element_or_an_error_as_in_numpy(run, kind, axes, shape):
    x = np.zeros(shape)
    status, found = reduced(run, simple(kind, "float64", 2, axes), [x], shape, axes, "float64")
    try:
        expected = NUMPY[kind](x, axis=axes)
    except ValueError:
        assert status == EMPTY_REDUCTION
        assert (found == 77).all()
    else:
        assert status == OK
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "power"), [("float64", 200), ("float32", 30)])
@pytest.mark.parametrize(("rank", "axes"), [(rank, axes) for rank, axes in AXES if rank == 2 and axes])
def test_a_product_overflows_only_where_the_product_of_the_elements_so_far_does(
    run, rank, axes, dtype, power
):
    """Partial products of every second element would be inf and 0, and NaN together."""
    x = np.ones((6, 64), dtype)
    x[0::2, 0::2] = x[1::2, 1::2] = 10.0**power
    x[0::2, 1::2] = x[1::2, 0::2] = 10.0**-power
    status, found = reduced(run, simple("prod", dtype, rank, axes), [x], x.shape, axes, dtype)
    assert status == OK
    np.testing.assert_allclose(found, 1.0, rtol=1e-4)


@pytest.mark.parametrize(("accumulator", "result"), [("float64", "float32"), ("int64", "int64")])
@pytest.mark.parametrize("axes", [(0,), (1,)])
def test_the_accumulator_may_be_wider_than_the_input(run, accumulator, result, axes):
    dtype = "float32" if accumulator == "float64" else "bool"
    kernel = simple("sum", dtype, 2, axes, accumulator, result)
    x = (
        np.random.default_rng(6).random((400, 400)) > 0.3
        if dtype == "bool"
        else np.full((400, 400), 0.1, "float32")
    )
    status, found = reduced(run, kernel, [x], x.shape, axes, result)
    assert status == OK
    np.testing.assert_array_equal(found, x.sum(axis=axes, dtype=accumulator).astype(result))


def test_the_error_of_a_long_sum_stays_near_numpys(run):
    kernel = simple("sum", "float32", 1, (0,))
    x = np.random.default_rng(7).random(1_000_000).astype("float32")
    status, found = reduced(run, kernel, [x], x.shape, (0,), "float32")
    exact = math.fsum(x.tolist())
    assert status == OK
    assert abs(found - exact) / exact < 4 * max(abs(x.sum() - exact) / exact, np.finfo("float32").eps)


def test_integer_sums_wrap(run):
    x = np.array([2**31 - 1, 5], "int32")
    status, found = reduced(run, simple("sum", "int32", 1, (0,)), [x], (2,), (0,), "int32")
    assert (status, found) == (OK, -(2**31) + 4)


def test_a_failing_statement_stops_a_reduction(run):
    operand = NestOperand("int64", (False,))
    body = [Statement("pow", (("input", 0), ("input", 1)), "int64")]
    kernel = reduction("sum", [operand, operand], body, ("value", 0), 1, (0,), "int64", "int64")
    x, exponents = np.array([2, 3]), np.array([3, -1])
    assert reduced(run, kernel, [x, exponents], (2,), (0,), "int64")[0] == NEGATIVE_POWER
    status, found = reduced(run, kernel, [x, abs(exponents)], (2,), (0,), "int64")
    assert (status, found) == (OK, 11)


@pytest.mark.parametrize(("kind", "dims"), [("mean", (0,)), ("sum", (2,)), ("sum", (-1,)), ("all", (0,))])
def test_a_reduction_that_makes_no_sense_is_refused(kind, dims):
    from engine.lowering.check import check_kernel

    with pytest.raises(InvalidKernel):
        check_kernel(simple(kind, "float64", 2, dims))


@pytest.mark.parametrize(
    ("dtype", "accumulator"), [("float64", "float64"), ("float32", "float64"), ("float32", "float32")]
)
@pytest.mark.parametrize("rows", [1, 2, 11, 12, 13, 29])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 90, 91])
def test_products_of_rows_are_those_of_their_elements_in_turn(run, dtype, accumulator, rows, length):
    kernel = simple("prod", dtype, 2, (1,), accumulator)
    random = np.random.default_rng(4)
    x = (random.normal(size=(rows, length)) * 10.0 ** random.uniform(-2, 2, (rows, 1))).astype(dtype)
    x[::2, :4:2], x[::2, 1:4:2] = np.finfo(dtype).max, np.finfo(dtype).tiny
    x[1::4, length // 2 :] *= 1e30
    status, found = reduced(run, kernel, [x], x.shape, (1,), accumulator)
    assert status == OK
    with np.errstate(all="ignore"):
        due = np.array([np.cumprod(row, dtype=accumulator)[-1] if length else 1.0 for row in x], accumulator)
    assert found.tobytes() == due.tobytes()


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rank", [1, 2])
def test_an_extreme_is_nan_if_any_element_is(run, kind, dtype, rank):
    block = PARTS * PART
    length = 2 * block + 13
    shape, axes = ((length,), (0,)) if rank == 1 else ((3, length), (1,))
    kernel = simple(kind, dtype, rank, axes)
    for fill in (1.5, -0.0, np.inf, -np.inf, np.nan):
        for position in (None, 0, 1, 7, 8, PART - 1, PART, block - 1, block, 2 * block, length - 1):
            for special in (np.nan, -np.nan, np.inf, -np.inf, 2.5):
                x = np.full(shape, fill, dtype)
                if position is not None:
                    x[..., position] = special
                status, found = reduced(run, kernel, [x], shape, axes, dtype)
                assert status == OK
                np.testing.assert_array_equal(found, NUMPY[kind](x, axis=axes))


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 5, 6, 7, 12, 20])
@pytest.mark.parametrize("length", [1, 3, 17, 200, 2 * PARTS * PART + 1])
def test_extremes_of_rows_are_each_of_its_own_row(run, kind, dtype, rows, length):
    kernel = simple(kind, dtype, 2, (1,))
    random = np.random.default_rng(length)
    x = random.normal(size=(rows, length)).astype(dtype)
    for row, special in zip((0, rows // 2, rows - 1), (np.nan, -np.inf, np.inf), strict=True):
        for position in (0, length // 2, length - 1):
            changed = x.copy()
            changed[row, position] = special
            changed[row - 1] = -0.0
            status, found = reduced(run, kernel, [changed], x.shape, (1,), dtype)
            assert status == OK
            np.testing.assert_array_equal(found, NUMPY[kind](changed, axis=1))


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
@pytest.mark.parametrize("rows", [1, TOGETHER - 1, TOGETHER, TOGETHER + 1, 3 * TOGETHER + 2])
def test_columns_are_accumulated_row_by_row(run, kind, dtype, rows):
    x = np.random.default_rng(rows).integers(-3, 4, size=(2, rows, TILE + 5)).astype(dtype)
    if dtype.startswith("float"):
        x *= x.dtype.type(0.1)
        x[:, :, 3], x[:, -1, 4], x[:, 0, 5] = -0.0, np.nan, np.inf
        x[:, rows // 2, 5] = -np.inf
    accumulator = "int64" if dtype == "bool" and kind in ("sum", "prod") else dtype
    kernel = simple(kind, dtype, 3, (1,), accumulator)
    status, found = reduced(run, kernel, [x], x.shape, (1,), accumulator)
    assert status == OK
    with np.errstate(all="ignore"):
        due = x[:, 0].astype(accumulator)
        for row in range(1, rows):
            due = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind](
                due, x[:, row].astype(accumulator)
            )
    np.testing.assert_array_equal(found, due)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axes", [(0,), (1,)])
def test_few_elements_are_reduced_one_at_a_time(run, kind, axes):
    kernel = reduction(
        kind,
        [NestOperand("float64", (False, False))],
        [],
        ("input", 0),
        2,
        axes,
        *["float64"] * 2,
        is_short=True,
    )
    x = np.array([[1.5, np.nan, -2.0], [3.0, 1.0, -0.5]])
    status, found = reduced(run, kernel, [x], x.shape, axes, "float64")
    assert status == OK
    np.testing.assert_array_equal(found, NUMPY[kind](x, axis=axes))
    loops = [node for node in walk(kernel.body) if isinstance(node, Loop)]
    assert all(loop.step in (1, BLOCK, TILE) for loop in loops)
