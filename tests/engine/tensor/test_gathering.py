"""Indexing by several arrays as indexing by one."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph.reference import evaluate
from engine.tensor.gathering import WrapIndex, first_axis


def test_axes_of_arrays_come_where_the_indexed_ones_were_or_in_front():
    assert [first_axis(axes) for axes in ([0], [2], [1, 2], [1, 3])] == [0, 2, 1, 0]


def test_negative_indices_count_from_the_end():
    index = pt.lvector("i")
    wrapped = WrapIndex(1)(index, 4)
    assert evaluate([index], [wrapped], [np.array([0, -1, 3, -4])])[0].tolist() == [0, 3, 3, 0]
    with pytest.raises(IndexError, match="axis 1 of size 4: index -5 at position 1"):
        evaluate([index], [wrapped], [np.array([0, -5])])
