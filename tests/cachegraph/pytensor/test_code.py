"""The compiled code of a PyTensor function is found by another process: linked, not compiled, and right."""

from __future__ import annotations

import json

import pytest

from tests.cachegraph.pytensor.code_process import in_fresh_process

NAMES = ("doubled", "solved", "drawn", "asserted")


@pytest.mark.slow
def test_a_second_process_links_and_gives_the_same_bits_and_errors() -> None:
    *first, _ = in_fresh_process(*NAMES)
    *second, warm = in_fresh_process(*NAMES)
    assert [row["results"] for row in first] == [row["results"] for row in second]
    assert "must be positive" in json.dumps(first[3]["results"])
    assert [row["compiled"] for row in second] == [0] * 4
    assert {kind for row in second for kind in row["held"]} == {"LinkedOverload"}
    assert (warm["code"], warm["misses"]) == ({"hits": 9, "misses": 0}, {})
    assert warm["imported"] == []
