"""The snippets of README.md and docs/ run as they stand: each page's, in order, in a fresh process and cache."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from cachegraph.declared_settings import SETTINGS
from tests.flow.page_snippets import PAGES, ROOT, run_page, snippets_of, to_run

PARSED = {"toml": tomllib.loads, "yaml": yaml.safe_load, "json": json.loads}
SHOWN = {"text", "dockerfile"}
RUN = {"python", "console", "sh", *PARSED}
MOST_NOT_RUN = 10
SLOW = {"ci.md", "containers.md", "hpc.md", "library.md", "pymc.md", "sharing.md", "tutorial.md"}
"""Pages that take five seconds and more."""

SITE_FILES = [
    str(path.relative_to(ROOT)) for path in sorted((ROOT / "examples" / "site").rglob("*")) if path.is_file()
]
"""tests/examples/test_site.py runs or reads each of them."""

SNIPPETS = [snippet for page in PAGES for snippet in snippets_of(page)]


def runs(page: Path) -> bool:
    """Tell whether a page has something to run."""
    return any(snippet.language in ("python", "console", "sh") for snippet in to_run(page))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in SLOW else [])
        for page in filter(runs, PAGES)
    ],
)
def test_the_snippets_of_a_page_run_and_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    done = run_page(to_run(page), tmp_path / "page")
    assert done.returncode == 0, done.stderr


def test_every_block_says_what_it_is() -> None:
    unknown = {
        f"{snippet.page}:{snippet.line}: {snippet.language or 'no language'}"
        for snippet in SNIPPETS
        if snippet.language not in RUN | SHOWN and not snippet.shows
    }
    assert not unknown


def test_each_file_for_a_site_is_shown_once_and_under_its_name() -> None:
    shown = [snippet for snippet in SNIPPETS if snippet.shows]
    assert {snippet.shows: snippet.title for snippet in shown} == {file: file for file in SITE_FILES}
    assert len(shown) == len(SITE_FILES)


def test_what_is_not_run_is_little_and_says_why() -> None:
    left_out = [snippet for snippet in SNIPPETS if snippet.not_run]
    assert len(left_out) <= MOST_NOT_RUN
    assert all(len(snippet.not_run.split()) >= 4 for snippet in left_out)
    assert all(snippet.language in RUN for snippet in left_out), "a mark where nothing would run"


@pytest.mark.parametrize("language", PARSED)
def test_shown_data_parse(language: str) -> None:
    for snippet in SNIPPETS:
        if snippet.language == language:
            assert PARSED[language](snippet.text)  # type: ignore[operator]


def test_the_variables_that_pages_name_exist() -> None:
    declared = {setting.variable for setting in SETTINGS} | {"CACHEGRAPH_PYTENSOR", "CACHEGRAPH_STRESS"}
    named = {
        (page.name, name)
        for page in PAGES
        for name in re.findall(r"CACHEGRAPH_[A-Z]+(?:_[A-Z]+)*", page.read_text())
    }
    assert not {pair for pair in named if pair[1] not in declared}


def test_a_page_that_lies_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('```python\nprint(1 + 1)\n```\n```text title="output"\n3\n```\n')
    done = run_page(snippets_of(page), tmp_path / "run")
    assert done.returncode == 1
    assert "printed\n2\n\nbut the page shows\n3" in done.stderr
    assert "line 4 of page.md" in done.stderr


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\none\n$ false\n```\n")
    done = run_page(snippets_of(page), tmp_path / "run")
    assert "false\nexited with code 1" in done.stderr
