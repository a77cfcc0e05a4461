"""The snippets of the documentation's pages, in order, with what a page says about running them.

    ```python                  run in the page's process, after the ones before it
    ```python title="model.py" written to that file, for the commands that follow
    ```text title="output"     what the snippet of Python before it prints
    ```console                 each line after `$` is run; the lines below it are what it prints
    ```sh                      run by bash
    ```toml, ```yaml, ```json  parsed
    ```text, ```dockerfile     shown

A block that is `--8<-- "FILE"` alone shows a file of the project, in any language; the tests of that file run it.

Printed text is compared as doctest compares it: `...` stands for anything, and white space is white space.
`<!-- not run: REASON -->` before a snippet leaves it out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
HAS_PYTENSOR = importlib.util.find_spec("pytensor") is not None
PROCESS = Path(__file__).with_name("page_process.py")
INCLUDED = re.compile(r'--8<-- "([^"]+)"\n')
INDENTED = "indented"
"""The language of a block that is indented instead of fenced: it cannot say what it is."""


class Snippet(NamedTuple):
    """A block of a page: where it begins, what it is in, and why it is not run (empty if it is).

    `shows` is the file of the project that it includes, empty if none.
    """

    page: str
    line: int
    language: str
    title: str
    text: str
    not_run: str
    shows: str

    @property
    def needs_pytensor(self) -> bool:
        """Tell whether it runs only where PyTensor is installed."""
        return (
            re.search(r"\bimport (pytensor|pymc|cachegraph\.pytensor|engine\.pytensor)\b", self.text)
            is not None
        )


def snippets_of(page: Path) -> list[Snippet]:
    """Return the blocks of code of a page, in order."""
    found, comment = [], ""
    for token in MarkdownIt().parse(page.read_text()):
        if token.type in ("fence", "code_block"):
            found.append(_snippet(page, token, comment))
        if token.type == "html_block":
            comment = token.content
        elif token.block and token.level == 0:
            comment = ""
    return found


def _snippet(page: Path, token: Token, comment: str) -> Snippet:
    assert token.map is not None
    language, _, options = token.info.partition(" ")
    if token.type == "code_block":
        language = INDENTED
    title = re.search(r'title="([^"]*)"', options)
    reason = re.search(r"<!-- not run: (.*?) -->", comment, re.DOTALL)
    included = INCLUDED.fullmatch(token.content)
    return Snippet(
        page.name,
        token.map[0] + 1,
        language,
        title[1] if title else "",
        (ROOT / included[1]).read_text() if included else token.content,
        reason[1] if reason else "",
        included[1] if included else "",
    )


def to_run(page: Path) -> list[Snippet]:
    """Return the snippets of a page that run here: without PyTensor, those before the first that needs it."""
    snippets = [snippet for snippet in snippets_of(page) if not (snippet.not_run or snippet.shows)]
    return list(takewhile(lambda snippet: HAS_PYTENSOR or not snippet.needs_pytensor, snippets))


def run_page(
    snippets: Iterable[Snippet], directory: Path, python: str | Path = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run snippets of a page in a fresh process of `python`, in an empty working directory, with an empty home."""
    directory.mkdir()
    home = directory / "home"
    home.mkdir()
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PYTHONPATH"))
    }
    return subprocess.run(
        [str(python), str(PROCESS)],
        input=json.dumps([snippet._asdict() for snippet in snippets]),
        cwd=directory,
        env=inherited
        | {"PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(home)}
        | {"COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
