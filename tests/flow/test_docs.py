"""The examples of the documentation run as they stand, and are found in the cache when they run again."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import engine

PAGE = Path(__file__).parents[2] / "docs" / "ops.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES)
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
