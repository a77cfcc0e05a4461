"""Constants of stored graphs: the same bits in the same layout, or refused."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pytensor.sparse.type import SparseTensorType
from pytensor.sparse.variable import SparseConstant
from pytensor.tensor.variable import TensorConstant

from cachegraph.pytensor.describe.held_arrays import HeldArrays
from cachegraph.pytensor.errors import Unstorable
from cachegraph.pytensor.stored.constants import pack_constant, same_constant, unpack_constant

ARRAYS = {
    "C": np.arange(6.0).reshape(2, 3),
    "Fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strided": np.arange(24.0).reshape(4, 6)[::2, ::3],
    "reversed": np.arange(5, dtype="int8")[::-1],
    "transposed": np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0),
    "broadcast": np.broadcast_to(np.float32(1.5), (3, 4)),
    "unit dimension": np.arange(5.0)[:, None][::-1],
    "empty": np.zeros((0, 3)),
    "scalar": np.array(-0.0),
    "not a number": np.array([0x7FF8000000000ABC, 0xFFF0000000000001], dtype="uint64").view("float64"),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_an_array_comes_back_with_its_bits_and_strides(array: np.ndarray) -> None:
    type_ = pt.TensorType(array.dtype, array.shape)
    found = unpack_constant(TensorConstant, type_, pack_constant(array, HeldArrays())).data
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()
    assert found.strides == array.strides or array.size == 0


@pytest.mark.parametrize("name", ["csr", "csc"])
@pytest.mark.parametrize("sort", [True, False])
def test_a_sparse_matrix_comes_back_with_its_bits_and_order(name: str, sort: bool) -> None:
    rows, columns = np.array([0, 0, 2, 2, 1]), np.array([2, 0, 1, 0, 1])
    matrix = getattr(scipy.sparse, f"{name}_matrix")(
        (np.array([1.0, -0.0, 3.0, 4.0, np.nan]), (rows, columns)), (3, 4)
    )
    if not sort:
        matrix.indices[:2], matrix.data[:2] = matrix.indices[1::-1].copy(), matrix.data[1::-1].copy()
        matrix.has_sorted_indices = False
    type_ = SparseTensorType(name, "float64")
    constant = SparseConstant(type_, matrix)
    found = unpack_constant(SparseConstant, type_, pack_constant(constant.data, HeldArrays()))
    assert same_constant(constant, found)
    assert found.data.has_sorted_indices == constant.data.has_sorted_indices
    changed = matrix.copy()
    changed.data[0] = 2.0
    assert not same_constant(constant, SparseConstant(type_, changed))


def test_what_is_stored_is_a_copy() -> None:
    array = np.arange(4.0)
    kept = pack_constant(array[::2], HeldArrays())
    array[:] = 7.0
    found = unpack_constant(TensorConstant, pt.TensorType("float64", (2,)), kept).data
    assert found.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("data", [np.array([object()]), np.random.default_rng(1), [1.0]])
def test_what_is_no_plain_value_is_refused(data: object) -> None:
    with pytest.raises(Unstorable, match="a constant of"):
        pack_constant(data, HeldArrays())


def test_what_is_left_of_a_large_array_is_kept_without_the_rest() -> None:
    column = np.arange(90_000.0).reshape(30, 3000)[:, 7]
    elements, strides = pack_constant(column, HeldArrays())
    found = unpack_constant(TensorConstant, pt.TensorType("float64", (30,)), (elements, strides)).data
    assert found.tolist() == column.tolist()
    assert not found.flags.c_contiguous
    assert found.base.nbytes < 2 * column.nbytes


def test_zeros_of_two_signs_are_two_constants_here() -> None:
    # PyTensor takes them for one.
    assert pt.constant(0.0).equals(pt.constant(-0.0))
    assert not same_constant(pt.constant(0.0), pt.constant(-0.0))
    assert same_constant(pt.constant([1.0, np.nan]), pt.constant([1.0, np.nan]))


def test_the_same_bits_are_the_same_constant_in_whatever_layout() -> None:
    assert same_constant(pt.constant(np.zeros(0)[::2]), pt.constant(np.zeros(0)))
    matrix = np.arange(6.0).reshape(2, 3)
    assert same_constant(pt.constant(matrix), pt.constant(np.asfortranarray(matrix)))
