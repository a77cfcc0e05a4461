"""The examples of docs/ops.md are found in the cache when they run again."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import engine
from tests.flow.page_snippets import ROOT, snippets_of

EXAMPLES = {snippet.line: snippet.text for snippet in snippets_of(ROOT / "docs" / "ops.md")}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=[f"line {line}" for line in EXAMPLES])
def test_an_example_runs_and_is_cached(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[str] = []
    made = engine.function

    def function(*args: object, **kwargs: object) -> engine.Function:
        found = made(*args, **kwargs)  # type: ignore[arg-type]
        outcomes.append(found.cache_info.outcome)
        return found

    monkeypatch.setattr(engine, "function", function)
    for run in ("first", "second"):
        path = tmp_path / run / f"{run}.py"
        path.parent.mkdir()
        path.write_text(example)
        runpy.run_path(str(path), run_name=run)
    half = len(outcomes) // 2
    assert half > 0
    assert outcomes == ["miss"] * half + ["hit"] * half
