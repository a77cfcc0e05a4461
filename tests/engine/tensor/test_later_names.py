"""The names that engine.tensor imports at first use: type checkers read the same ones as running programs."""

from __future__ import annotations

import ast
from pathlib import Path

from engine.tensor import later

TYPES = Path(later.__file__).with_name("later_names.pyi")


def test_type_checkers_read_the_names_that_are_imported_later() -> None:
    modules: dict[str, str] = {}
    for node in ast.walk(ast.parse(TYPES.read_text())):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name, "only a name imported as itself is exported"
                module = f"{node.module}.{alias.name}" if alias.name in later.MODULES else node.module
                modules[alias.name] = str(module)
    assert modules == later.LATER
