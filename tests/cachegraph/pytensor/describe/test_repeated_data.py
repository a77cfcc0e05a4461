"""Data that repeat other data are found by their bits, types and axes; anything less is data of its own."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
import pytest

from cachegraph.pytensor.describe.repeated_data import Data, without_repeats

NUMBERS = np.arange(40.0)


def found(*arrays: np.ndarray) -> Data:
    return without_repeats([pt.constant(array) for array in arrays])


def test_equal_data_and_data_with_more_axes_repeat_what_has_the_fewest() -> None:
    data = found(NUMBERS[:, None], NUMBERS + 1, NUMBERS, NUMBERS[None, :, None], NUMBERS.copy())
    assert [constant.type.shape for constant in data.inputs] == [(40,), (40,)]
    assert data.inputs[0].data[0] == 1.0
    assert data.pattern == ((0, 1, (0, "x")), (3, 1, ("x", 0, "x")), (4, 1, (0,)))
    for repeat in data.repeats:
        view = data.inputs[repeat.first].dimshuffle(*repeat.order)
        assert view.type == repeat.constant.type
        np.testing.assert_array_equal(view.eval(), repeat.constant.data)


def test_zeros_have_signs_and_nans_are_equal() -> None:
    zeros = np.zeros(40)
    assert not found(zeros, -zeros).repeats
    odd = np.where(NUMBERS < 3, np.nan, NUMBERS)
    assert len(found(odd, odd.copy()).repeats) == 1


@pytest.mark.parametrize(
    "other",
    [
        np.where(NUMBERS == 39, 0.0, NUMBERS),
        NUMBERS.astype("float32"),
        NUMBERS.astype("int64"),
        NUMBERS.view("int64"),
        NUMBERS.reshape(8, 5),
        NUMBERS[:39],
        np.repeat(NUMBERS, 2)[::2],
    ],
)
def test_other_numbers_types_shapes_and_layouts_are_other_data(other: np.ndarray) -> None:
    assert not found(NUMBERS, other).repeats


def test_a_collision_of_digests_is_no_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachegraph.pytensor.describe.repeated_data.digest", lambda content: b"")
    data = found(NUMBERS, NUMBERS + 1, NUMBERS[:, None] + 1)
    assert [constant.data[0] for constant in data.inputs] == [0.0, 1.0]
    assert data.pattern == ((2, 1, (0, "x")),)


def test_claims_about_data_are_not_shared() -> None:
    tagged = pt.constant(NUMBERS.reshape(8, 5).copy())
    tagged.tag.lower_triangular = True
    assert not without_repeats([tagged, pt.constant(NUMBERS.reshape(8, 5))]).repeats


def test_axes_of_length_one_are_matched_or_refused() -> None:
    row, column = NUMBERS[None], NUMBERS[:, None]
    assert not found(row, column).repeats
    assert found(row, NUMBERS[None, None]).pattern == ((1, 0, (0, "x", 1)),)
