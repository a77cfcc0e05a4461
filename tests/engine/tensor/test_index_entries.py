"""The form of an index, and PyTensor's way to write it."""

import pytest

import engine.tensor as pt
from engine.tensor.index_entries import (
    entries_of,
    flatten_index_variables,
    get_idx_list,
    idx_list_of,
    indices_from_subtensor,
    unflatten_index_variables,
)
from engine.tensor.none_type import NoneConst

INDEX = (pt.lscalar("i"), slice(None, pt.lscalar("b")), pt.lvector("v"), slice(pt.lscalar("a"), None, 2))


def test_an_index_is_positions_and_what_they_stand_for():
    positions, flat = flatten_index_variables(INDEX)
    assert positions == (0, slice(None, 1), 2, slice(3, None, 4))
    assert unflatten_index_variables(flat, positions) == INDEX
    assert indices_from_subtensor(flat, positions) == INDEX
    assert get_idx_list([pt.dvector(), *flat], positions) == INDEX


def test_positions_are_pytensors():
    subtensor = pytest.importorskip("pytensor.tensor.subtensor")
    assert list(flatten_index_variables(INDEX)[0]) == subtensor.flatten_index_variables(INDEX)[0]


def test_entries_and_positions_say_the_same():
    positions = (0, slice(None, 1), 2, slice(3, None, 4), slice(None))
    assert entries_of(positions) == ("i", ":b", "i", "a::c", ":")
    assert idx_list_of(entries_of(positions)) == positions
    assert entries_of(["i", ":"]) == ("i", ":")


def test_none_as_a_variable_is_no_bound():
    assert flatten_index_variables([slice(NoneConst, 1)]) == ((slice(None, 0),), [1])


@pytest.mark.parametrize("wrong", [[1], [0, 2], [slice(1, 0)], [1.0], [None], [slice("a")]])
def test_other_lists_are_refused(wrong):
    with pytest.raises(ValueError, match="Making an index"):
        entries_of(wrong)
