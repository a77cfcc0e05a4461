"""Aliases say which mutable values are one object, and which arrays overlap in memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cachegraph.fingerprint.aliases import aliases

BUFFER = np.arange(24.0)
SLICES = st.tuples(st.integers(0, 23), st.integers(1, 24), st.sampled_from([1, 2, -1, -3]))


def test_distinct_values_have_no_aliases() -> None:
    assert aliases([[1], [1], {}, {}, set(), np.zeros(2), np.zeros(2), np.zeros(0)]) == ()


def test_a_container_that_occurs_again_is_an_alias_of_its_first_occurrence() -> None:
    shared: list[int] = []
    assert aliases([[], shared, {}, shared, shared]) == ((1, 3, 0), (1, 4, 0))


def test_arrays_that_overlap_are_aliases_with_their_distance() -> None:
    assert aliases([BUFFER, BUFFER[2:4]]) == ((0, 1, 16),)
    assert aliases([BUFFER[:2], BUFFER[2:4]]) == ()
    assert aliases([BUFFER[4::-1], BUFFER[3:6]]) == ((0, 1, 24),)
    assert aliases([BUFFER[:3], BUFFER[4:9], BUFFER[2:5]]) == ((0, 1, 32), (0, 2, 16))


@given(st.lists(SLICES, max_size=6))
def test_every_array_that_may_share_memory_with_another_has_an_alias(
    slices: list[tuple[int, int, int]],
) -> None:
    arrays = [BUFFER[begin : begin + count][::step] for begin, count, step in slices]
    named = {position for alias in aliases(arrays) for position in alias[:2]}
    sharing = {
        i for i, a in enumerate(arrays) for j, b in enumerate(arrays) if i != j and np.may_share_memory(a, b)
    }
    assert named == sharing
