"""The source as text: one meaning per class name, and limits on modules, functions, lines and docstrings."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("engine", "cachegraph", "tools")

MAX_COLUMNS = 110
MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 600

QUESTION_WORDS = ("What", "Whether", "Who", "Whose", "Which", "That")

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Trees = dict[str, ast.Module]


def _sources() -> dict[str, str]:
    files = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """The text of every module, by its path."""
    return _sources()


@pytest.fixture(scope="module")
def trees(sources: dict[str, str]) -> Trees:
    """The syntax tree of every module, by its path."""
    return {path: ast.parse(text) for path, text in sources.items()}


def _report(findings: list[str]) -> str:
    return f"{len(findings)} found:\n" + "\n".join(findings)


def _texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the constants that stand alone: the docstrings, also those below attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def test_decisions_have_numbers_of_their_own_and_a_line_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(page for page in folder.glob("[0-9]*.md") if page.name != "0000-template.md")
    numbers = [page.name[:4] for page in pages]
    assert len(set(numbers)) == len(numbers), "two decisions have one number"
    index = (folder / "index.md").read_text(encoding="utf-8").splitlines()
    titles = {page: page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for page in pages}
    assert not [title for page, title in titles.items() if not title.startswith(f"{page.name[:4]}: ")]
    lines = {f"- [{title}]({page.name})" for page, title in titles.items()}
    findings = sorted(lines.symmetric_difference(line for line in index if line.startswith("- ")))
    assert not findings, f"docs/decisions/index.md: {_report(findings)}"
    assert len(index) == len(set(index)) + index.count("") - 1, "a line stands twice"


def test_a_class_name_has_one_definition(trees: Trees) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path}:{node.lineno}")
    findings = [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]
    assert not findings, _report(findings)


def test_functions_are_short(trees: Trees) -> None:
    findings = [
        f"{path}:{node.lineno}: {node.name} has {lines} lines"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, Definition)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not findings, _report(findings)


def test_modules_are_short(sources: dict[str, str]) -> None:
    findings = [
        f"{path} has {lines} lines"
        for path, text in sources.items()
        if not path.startswith("tools/") and (lines := len(text.splitlines())) > MAX_MODULE_LINES
    ]
    assert not findings, _report(findings)


def test_lines_are_short(sources: dict[str, str]) -> None:
    findings = [
        f"{path}:{number}: {len(line)} columns"
        for path, text in sources.items()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]
    assert not findings, _report(findings)


def test_docstrings_open_with_a_statement(trees: Trees) -> None:
    findings = [
        f"{path}:{node.lineno}: {node.value.split(chr(10))[0][:70]}"
        for path, tree in trees.items()
        for node in _texts(tree)
        if isinstance(node.value, str)
        if node.value.split(maxsplit=1)[:1] and node.value.split(maxsplit=1)[0].strip(",:;") in QUESTION_WORDS
    ]
    assert not findings, _report(findings)
