"""With the adapter, variables know the lines that made them as without it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph import utils

import cachegraph.pytensor
from cachegraph.pytensor.making import traces

PYTENSORS = utils.simple_extract_stack
SKIPS = ("pytensor/tensor/", "pytensor/graph/", "making/test_traces")


@pytest.fixture
def installed() -> Iterator[None]:
    cachegraph.pytensor.install()
    yield
    cachegraph.pytensor.uninstall()


def at_depth(depth: int, step: Callable[[], Any]) -> Any:
    return at_depth(depth - 1, step) if depth else step()


@pytest.mark.parametrize("limit", [None, 0, 1, 3, 8, 1000, -1])
@pytest.mark.parametrize("skips", [None, [], SKIPS, ["no such file"]])
def test_a_stack_has_the_lines_that_pytensor_finds(limit: int | None, skips: Any) -> None:
    for depth in (0, 2, 40, 2):
        found, due = at_depth(
            depth,
            lambda: [
                extract(sys._getframe(), limit=limit, skips=skips)
                for extract in (traces.extract_stack, PYTENSORS)
            ],
        )
        assert found == due


def test_without_a_frame_the_stack_is_the_callers() -> None:
    found, due = [extract(limit=1) for extract in (traces.extract_stack, PYTENSORS)]
    assert found == due
    assert found[0][2] == "test_without_a_frame_the_stack_is_the_callers"


@pytest.mark.parametrize("limit", [2, 0, -3])
def test_the_limit_of_tracebacks_counts_where_none_is_given(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "tracebacklimit", limit, raising=False)
    found, due = [extract() for extract in (traces.extract_stack, PYTENSORS)]
    assert found == due


def test_code_without_source_has_lines_without_text() -> None:
    frames: list[FrameType] = []
    names = {"note": lambda: frames.append(sys._getframe(1))}
    exec(compile("def f():\n    note()\n\nf()", "<nowhere>", "exec"), names)
    exec(compile("def f():\n    pass\n    note()\n\nf()", "<nowhere>", "exec"), names)
    for frame in frames:
        found = traces.extract_stack(frame, limit=2)
        assert found == PYTENSORS(frame, limit=2)
        assert found[-1][3] is None


def test_many_code_objects_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST_KNOWN", 3)
    names: dict[str, Any] = {"trace": lambda: traces.extract_stack(sys._getframe(1), limit=1, skips=("x",))}
    for number in range(20):
        code = compile(f"found = trace()  # {number}", f"<made {number}>", "exec")
        exec(code, names)
        assert names["found"] == [(f"<made {number}>", 1, "<module>", None)]
    assert len(traces._known[("x",)]) <= 4


def test_a_variable_made_with_the_adapter_knows_its_line(installed: None) -> None:
    x = pt.dvector("x")
    (found,) = [pt.exp(x).tag.trace for _ in range(2)][1:]
    assert found[0][-1][0].endswith("test_traces.py")
    assert found[0][-1][3] == "(found,) = [pt.exp(x).tag.trace for _ in range(2)][1:]"
    with pytensor.config.change_flags(traceback__limit=0):
        assert pt.exp(x).tag.trace == []


def test_uninstalling_gives_pytensor_its_own_back(installed: None) -> None:
    assert utils.simple_extract_stack is traces.extract_stack
    cachegraph.pytensor.uninstall()
    assert utils.simple_extract_stack is PYTENSORS
