"""Products of vectors and matrices in every dtype: by loops and by BLAS, empty and transposed."""

import ctypes
import sys

import numpy as np
import pytest

from engine.lowering.check import check_kernel
from engine.lowering.kernels.dot import (
    BLAS_MATRIX_SIZE,
    BLAS_VECTOR_SIZE,
    matrix_matrix,
    matrix_vector,
    vector_vector,
)
from engine.lowering.loops import Call, If
from engine.runtime import externals
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import OK

DTYPES = ["float64", "float32", "int64", "int32", "int16", "uint64", "uint8", "bool"]
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}


def some(dtype, shape, seed):
    source = np.random.default_rng(seed)
    if dtype == "bool":
        return source.random(shape) > 0.7
    if "int" in dtype:
        return source.integers(-(2**20), 2**20, size=shape).astype(dtype)
    return source.normal(size=shape).astype(dtype)


def stored(matrix, transposed):
    return np.ascontiguousarray(matrix.T) if transposed else matrix


def assert_same(found, expected):
    np.testing.assert_allclose(
        found, expected, rtol=TOLERANCE.get(str(found.dtype), 0), atol=TOLERANCE.get(str(found.dtype), 0)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_inner_product_of_two_vectors(run, dtype):
    for length in (0, 1, 5, 1000, 5003):
        a, b = some(dtype, length, 1), some(dtype, length, 2)
        found = np.empty((), dtype)
        assert run(vector_vector(dtype), [a, b], [found], (length,)) == OK
        assert_same(found, a @ b)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_times_a_vector(run, dtype, transposed):
    kernel = matrix_vector(dtype, transposed)
    for m, k in ((3, 4), (1, 1), (0, 4), (3, 0), (0, 0), (60, 31), (1, 500), (500, 1)):
        matrix, vector = some(dtype, (m, k), 1), some(dtype, k, 2)
        found = np.full(m, 1, dtype)
        assert run(kernel, [stored(matrix, transposed), vector], [found], (m, k)) == OK
        assert_same(found, matrix @ vector)


@pytest.mark.parametrize("second_transposed", [False, True])
@pytest.mark.parametrize("first_transposed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_times_a_matrix(run, dtype, first_transposed, second_transposed):
    kernel = matrix_matrix(dtype, first_transposed, second_transposed)
    for m, k, n in (
        (2, 3, 4),
        (1, 1, 1),
        (0, 3, 4),
        (2, 0, 4),
        (2, 3, 0),
        (0, 0, 0),
        (17, 30, 23),
        (1, 200, 2),
    ):
        first, second = some(dtype, (m, k), 1), some(dtype, (k, n), 2)
        found = np.full((m, n), 1, dtype)
        inputs = [stored(first, first_transposed), stored(second, second_transposed)]
        assert run(kernel, inputs, [found], (m, k, n)) == OK
        assert_same(found, first @ second)


@pytest.mark.parametrize(
    ("kernel", "size", "sizes"),
    [
        (matrix_vector("float64", False), BLAS_VECTOR_SIZE, (60 * 31, 3 * 4)),
        (matrix_matrix("float64", False, False), BLAS_MATRIX_SIZE, (17 * 30 * 23, 2 * 3 * 4)),
    ],
)
def test_the_sizes_tested_lie_on_both_sides_of_where_blas_begins(kernel, size, sizes):
    assert sizes[0] >= size > sizes[1]
    choice = kernel.body[-1]
    assert isinstance(choice, If)
    assert isinstance(choice.then[0], Call)


def test_not_a_number_and_infinity_pass_through_blas(run):
    first, second = some("float64", (20, 20), 1), some("float64", (20, 20), 2)
    first[3, 4], second[5, 6] = np.nan, np.inf
    found = np.empty((20, 20))
    assert run(matrix_matrix("float64", False, False), [first, second], [found], (20, 20, 20)) == OK
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(first @ second))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_blas_comes_from_the_library_numpy_has_loaded():
    if not externals.numpy_libraries():
        pytest.skip("this numpy brings no BLAS library of its own")
    address = externals.resolve("blas_dgemm")
    with open("/proc/self/maps") as maps:
        lines = [line for line in maps if _covers(line, address)]
    assert lines[0].split()[-1] in externals.numpy_libraries()


def _covers(line, address):
    low, high = (int(bound, 16) for bound in line.split()[0].split("-"))
    return low <= address < high


def test_blas_can_come_from_scipy_without_its_linalg_package():
    before = "scipy.linalg" in sys.modules
    address = externals._from_scipy("cython_blas", "ddot")
    ddot = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_void_p] * 5)(address)
    n, one = ctypes.c_int64(3), ctypes.c_int64(1)
    x = np.array([1.0, 2.0, 3.0])
    arguments = [
        ctypes.addressof(n),
        x.ctypes.data,
        ctypes.addressof(one),
        x.ctypes.data,
        ctypes.addressof(one),
    ]
    assert ddot(*arguments) == 14.0
    assert ("scipy.linalg" in sys.modules) == before


@pytest.mark.parametrize("external", sorted(externals.LINEAR_ALGEBRA))
def test_both_sources_have_every_external(external):
    assert externals.resolve(external)
    library, routine = external.split("_", 1)
    assert externals._from_scipy(f"cython_{library}", routine)


def test_a_call_with_the_wrong_number_of_arguments_is_refused():
    kernel = matrix_vector("float64", False)
    choice = kernel.body[-1]
    wrong = Call(choice.then[0].external, choice.then[0].arguments[1:])
    broken = type(kernel)(kernel.parameters, (wrong,), kernel.arguments, kernel.summary)
    with pytest.raises(InvalidKernel):
        check_kernel(broken)
