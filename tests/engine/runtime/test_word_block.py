"""Blocks of words: each field is where its content begins, or is its content."""

from __future__ import annotations

import numpy as np

from engine.runtime.word_block import word_block


def test_fields_are_words_or_the_places_of_their_contents() -> None:
    block = word_block(
        ("size", "rows", "sites", "state"), {"size": 7, "state": -1}, {"rows": [10, 11]}, [[1, 2, 3], [4]]
    )
    assert block.dtype == np.int64
    size, rows, sites, state = block[:4]
    assert (size, state) == (7, -1)
    assert block[rows : rows + 2].tolist() == [10, 11]
    first, second = block[sites : sites + 2]
    assert block[first : first + 3].tolist() == [1, 2, 3]
    assert block[second:].tolist() == [4]


def test_a_block_without_sites_has_an_empty_table() -> None:
    block = word_block(("rows", "sites"), {}, {"rows": []}, [])
    assert block.tolist() == [2, 2]
