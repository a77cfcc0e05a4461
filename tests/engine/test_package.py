"""The package `engine`: its public names, two of which are names of its modules too."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import {module}
import engine
engine.{name}
assert engine.{name} is getattr(__import__("sys").modules["engine.{name}"], "{name}")
from engine import {name}
assert {name} is engine.{name}
"""


@pytest.mark.parametrize("name", ["function", "shared"])
@pytest.mark.parametrize("module", ["engine", "engine.{}", "engine.shared, engine.function"])
def test_a_name_of_a_module_and_of_what_it_defines_is_what_it_defines(name: str, module: str) -> None:
    program = PROGRAM.format(module=module.format(name), name=name)
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_name_that_somebody_replaces_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    import engine

    own = engine.function
    with monkeypatch.context() as patch:
        patch.setattr(engine, "function", len)
        assert engine.function is len
    assert engine.function is own
