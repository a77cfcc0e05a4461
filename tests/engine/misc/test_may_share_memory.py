import numpy as np
import pytest

from engine.misc.may_share_memory import may_share_memory


def test_a_view_shares_the_memory_of_its_array():
    array = np.zeros(6)
    assert may_share_memory(array, array[::2])
    assert not may_share_memory(array[:3], array[3:])
    assert not may_share_memory(array, array.copy())


def test_what_is_no_array_is_refused_or_shares_nothing():
    with pytest.raises(TypeError, match="give two arrays"):
        may_share_memory(np.zeros(2), [0.0])
    assert may_share_memory(np.zeros(2), [0.0], raise_other_type=False) is False
