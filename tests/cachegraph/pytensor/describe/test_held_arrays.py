"""References of stored graphs to the arrays of the graph in hand, and to views of their memory."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from cachegraph.pytensor.describe.held_arrays import HeldArrays, name_of_array

MATRIX = np.arange(12.0).reshape(3, 4)
VIEWS = {
    "itself": MATRIX,
    "transposed": MATRIX.T,
    "reversed": MATRIX[::-1, ::-2],
    "element": MATRIX[1, 2:3],
    "broadcast": np.broadcast_to(MATRIX[0], (5, 4)),
    "integers": MATRIX.view("int64")[1],
}


def held(*arrays: np.ndarray) -> HeldArrays:
    return HeldArrays((name_of_array(array), array) for array in arrays)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_is_found_in_the_memory_of_another_array_that_held_the_same(view: np.ndarray) -> None:
    reference = held(MATRIX).reference(view)
    assert reference is not None
    other = MATRIX.copy()
    found = held(other).array(*reference[1:])
    assert (found.dtype, found.shape, found.tobytes()) == (view.dtype, view.shape, view.tobytes())
    assert np.shares_memory(found, other)


def test_what_is_computed_of_an_array_is_not_referred_to() -> None:
    assert held(MATRIX).reference(MATRIX + 0.0) is None
    assert held(MATRIX[1:]).reference(MATRIX) is None


@pytest.mark.parametrize(
    "view",
    [
        (8, "<f8", (3, 4), (32, 8)),
        (-8, "<f8", (1,), (8,)),
        (0, "<f8", (3, 4), (32, -8)),
        (0, "<f8", (2**40, 2**40), (2**30, 8)),
        (0, "O", (1,), (8,)),
        (0, "<f8", (3,), (8, 8)),
    ],
)
def test_a_view_beyond_its_array_is_refused(view: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="reading a constant"):
        held(MATRIX).array(name_of_array(MATRIX), *view)


def test_an_array_that_is_overwritten_has_changed_in_a_pickle_too() -> None:
    array = MATRIX.copy()
    arrays = held(array)
    assert not arrays.have_changed()
    array[0, 0] = -0.0
    assert arrays.have_changed()
    assert pickle.loads(pickle.dumps(arrays)).have_changed()
