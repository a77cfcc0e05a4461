"""A function of PyTensor is rewritten once. What every later process does with it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.flow.pytensor_process import CASES, reports

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("pytensor") is None,
        reason="PyTensor is not installed (it needs Python 3.12)",
    ),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A cache that one process has made all cases in, and what that process reported."""
    directory = str(tmp_path_factory.mktemp("pytensor") / "cache")
    return directory, reports(*CASES, CACHEGRAPH_DIR=directory)


@pytest.fixture(scope="module")
def warm(filled: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """What a second process reports, under another hash seed, which may not rewrite."""
    return reports(*CASES, CACHEGRAPH_DIR=filled[0], CACHEGRAPH_ON_MISS="error", PYTHONHASHSEED="7")


@pytest.fixture(scope="module")
def without(filled: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """What a process reports that uses no cache but PyTensor's own."""
    return reports(*CASES, CACHEGRAPH_DIR=filled[0], CACHEGRAPH_MODE="off")


@pytest.mark.parametrize("case", CASES)
def test_the_first_process_rewrites(filled: tuple[str, dict[str, Any]], case: str) -> None:
    cold = filled[1][case]
    assert (cold["info"]["outcome"], cold["info"]["reason"]) == ("miss", "never-seen")
    assert cold["rewrites"] > 0
    assert cold["info"]["seconds"]["rewrite"] > 0


@pytest.mark.parametrize("case", CASES)
def test_the_second_process_rewrites_nothing(
    filled: tuple[str, dict[str, Any]], warm: dict[str, Any], case: str
) -> None:
    found = warm[case]["info"]
    assert (found["outcome"], found["reason"]) == ("hit", "")
    assert found["key"] == filled[1][case]["info"]["key"]
    assert warm[case]["rewrites"] == found["rewrites"] == 0
    assert found["seconds_saved"] > 0


@pytest.mark.parametrize("case", CASES)
def test_hit_miss_and_no_cache_give_the_same_bits(
    filled: tuple[str, dict[str, Any]], warm: dict[str, Any], without: dict[str, Any], case: str
) -> None:
    assert warm[case]["results"] == filled[1][case]["results"] == without[case]["results"]


@pytest.mark.parametrize("case", CASES)
def test_a_hit_shows_the_optimized_graph_that_the_miss_made(
    filled: tuple[str, dict[str, Any]], warm: dict[str, Any], case: str
) -> None:
    assert warm[case]["graph"] == filled[1][case]["graph"]


def test_nothing_went_wrong(filled: tuple[str, dict[str, Any]], warm: dict[str, Any]) -> None:
    for process in (filled[1], warm):
        assert "adapter-failure" not in process["bypasses"]
        assert "cachegraph" not in process["stderr"]


def test_without_a_cache_everything_is_left_to_pytensor(without: dict[str, Any]) -> None:
    assert {without[case]["info"]["outcome"] for case in CASES} == {"bypass"}
    assert without["bypasses"] == {"disabled": len(CASES)}


def test_a_pickled_function_finds_its_code_where_no_adapter_is_installed(
    filled: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    file = str(tmp_path / "function.pickle")
    here = reports("pickle", file, CACHEGRAPH_DIR=filled[0])
    there = reports("unpickle", file, CACHEGRAPH_DIR=filled[0], CACHEGRAPH_ON_MISS="error")
    assert there["result"] == here["result"]
    assert (there["info"]["outcome"], there["info"]["found"]) == ("carried", {"numba": [1, 0]})
    assert there["info"]["key"] == filled[1]["elementwise"]["info"]["key"]
    assert not there["linked"]  # what turns graphs into numba's functions was not even imported


def test_a_pickled_function_is_compiled_where_the_store_is_empty(
    filled: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    file = str(tmp_path / "function.pickle")
    here = reports("pickle", file, CACHEGRAPH_DIR=filled[0])
    elsewhere = reports("unpickle", file, CACHEGRAPH_DIR=str(tmp_path / "empty"))
    assert elsewhere["info"]["found"] == {"numba": [0, 1]}
    assert elsewhere["result"] == here["result"]
