"""docs/library.md: its compiler starts warm in a second process, and its code runs where little is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flow.page_snippets import ROOT, snippets_of

SNIPPETS = [snippet for snippet in snippets_of(ROOT / "docs" / "library.md") if snippet.language == "python"]
EXPRESSION = "import toyc; print(toyc.compile('x * (y + 2)')(x=3, y=4))"
USES = "import cachegraph.fingerprint as f; print(primes(12), f.fingerprint(Target('x86', ())).hex())"

WITHOUT = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {refused!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refused())
"""
OPTIONAL = ("numba", "llvmlite", "scipy", "sqlalchemy", "click", "rich", "msgspec", "cryptography")


@pytest.fixture
def run(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Return a function that runs a program beside the page's toyc.py, and its other snippets as uses.py."""
    (tmp_path / "toyc.py").write_text("".join(snippet.text for snippet in SNIPPETS if snippet.title))
    (tmp_path / "uses.py").write_text("\n".join(snippet.text for snippet in SNIPPETS if not snippet.title))

    def program(text: str) -> str:
        path = f"{tmp_path}{os.pathsep}{ROOT}"
        done = subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return program


def test_the_pages_compiler_starts_warm_in_the_next_process(run) -> None:  # type: ignore[no-untyped-def]
    assert [run(EXPRESSION), run(EXPRESSION)] == [
        f"{outcome}: x * (y + 2)\n18\n" for outcome in ("miss", "hit")
    ]


def test_the_pages_code_runs_with_little_installed(run) -> None:  # type: ignore[no-untyped-def]
    little = WITHOUT.format(refused=OPTIONAL)
    printed = [run(f"{little}\n{EXPRESSION}\nfrom uses import Target, primes\n{USES}") for _ in range(2)]
    assert printed[0].replace("miss", "hit") == printed[1]
    assert "[2, 3, 5, 7, 11]" in printed[1]
