"""Run the snippets of one page in this process, in order, in the working directory.

It reads them as JSON from its standard input and uses the standard library only, so that any environment's Python
can run it. It exits with the first snippet that fails, or prints something else than the page says.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import linecache
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

Snippet = dict[str, Any]
MATCHING = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Page:
    """What the snippets of a page share: the names of their Python, and what the last of it printed."""

    def __init__(self) -> None:
        self.module = types.ModuleType("__main__")
        self.printed = ""

    def run(self, snippet: Snippet) -> None:
        """Run one snippet; raises what it raises, and AssertionError for another output."""
        language, title = snippet["language"], snippet["title"]
        if language == "python" and title:
            Path(title).write_text(snippet["text"])
        elif language == "python":
            self.printed = self.python(snippet)
        elif language == "text" and title == "output":
            compare(snippet["text"], self.printed)
        elif language == "console":
            console(snippet["text"])
        elif language == "sh":
            shell(snippet["text"])

    def python(self, snippet: Snippet) -> str:
        """Run Python; return what it printed."""
        name = f"{snippet['page']}:{snippet['line']}"
        # Tracebacks, and what describes a function by its source, find the text here.
        linecache.cache[name] = (len(snippet["text"]), None, snippet["text"].splitlines(keepends=True), name)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(snippet["text"], name, "exec"), self.module.__dict__)
        return printed.getvalue()


def shell(command: str) -> str:
    """Return what bash prints for a command; raises AssertionError if it fails."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\nexited with code {done.returncode}:\n{done.stdout}"
    return done.stdout


def console(text: str) -> None:
    """Run each command of a session, and compare what it prints with the lines below it."""
    for session in re.split(r"^(?=\$ )", text, flags=re.MULTILINE):
        command, _, shown = session.removeprefix("$ ").partition("\n")
        if command:
            printed = shell(command)
            if shown.strip():
                compare(shown, printed, command)


def compare(shown: str, printed: str, of: str = "the snippet") -> None:
    """Raise AssertionError, with both texts, if what was printed is not what the page shows."""
    same = doctest.OutputChecker().check_output(shown, printed, MATCHING)
    assert same, f"{of} printed\n{printed}\nbut the page shows\n{shown}"


def main() -> None:
    """Run the snippets on the standard input."""
    page = Page()
    sys.modules["__main__"] = page.module
    sys.path.insert(0, os.getcwd())
    for snippet in json.load(sys.stdin):
        try:
            page.run(snippet)
        except BaseException as error:
            error.add_note(f"in the snippet at line {snippet['line']} of {snippet['page']}")
            raise


if __name__ == "__main__":
    main()
