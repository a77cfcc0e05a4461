"""Which axes stay when tensors are packed."""

import pytest

import engine.tensor as pt
from engine.tensor.packing import kept_axes


@pytest.mark.parametrize(
    ("axes", "kept"),
    [(None, (0, 0)), ([0, 1], (2, 0)), (-1, (0, 1)), ([-2, -1], (0, 2)), ([0, 1, -1], (2, 1))],
)
def test_first_and_last_axes_stay(axes, kept):
    assert kept_axes(axes) == kept
    packed, shapes = pt.pack(pt.tensor3(), pt.tensor3(), keep_axes=axes)
    assert packed.type.ndim == sum(kept) + 1
    assert [each.type.ndim for each in pt.unpack(packed, shapes, keep_axes=axes)] == [3, 3]


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ([1], "Positive axes must include 0"),
        ([-2], "Negative axes must include -1"),
        ([0, 2], "Positive axes must be contiguous"),
        ([-3, -1], "Negative axes must be contiguous"),
        ([-1, 0], "Negative axes must come after positive"),
        ([0, 0], "no duplicates"),
        ([0, 2, 1], "strictly increasing"),
        ([], "must come after"),
    ],
)
def test_other_axes_are_refused_with_the_reason(axes, reason):
    with pytest.raises(ValueError, match=reason):
        pt.pack(pt.tensor3(), keep_axes=axes)
