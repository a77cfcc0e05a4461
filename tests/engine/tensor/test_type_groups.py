"""Types are grouped by rank and by what their numbers are."""

from typing import get_args

import pytest
from numpy.typing import ArrayLike

import engine.tensor as pt
from engine.graph import Variable
from engine.tensor.type import TensorType

DTYPES = {
    "int": ["int8", "int16", "int32", "int64"],
    "float": ["float32", "float64"],
    "complex": ["complex64", "complex128"],
}


@pytest.mark.parametrize("number", DTYPES)
@pytest.mark.parametrize(("rank", "ndim"), [("", 0), ("_scalar", 0), ("_vector", 1), ("_matrix", 2)])
def test_a_group_has_a_type_for_each_dtype(number, rank, ndim):
    types = getattr(pt, f"{number}{rank}_types")
    assert list(types) == [TensorType(dtype, (None,) * ndim) for dtype in DTYPES[number]]


def test_what_becomes_a_tensor_has_a_type_for_annotations():
    assert {Variable, *get_args(ArrayLike)} <= {*get_args(pt.TensorLike)}
