"""The package `engine`: its public names are imported when they are used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import cloudpickle
import pytest

import engine

PROGRAM = """
import engine.functions, engine.shared_variables
import engine
for name in engine.__all__:
    assert callable(getattr(engine, name)) or name == "config", name
"""


def test_no_import_of_a_module_hides_a_public_name() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


@pytest.mark.parametrize("name", ["assumptions", "compile", "link", "misc", "printing", "raise_op"])
def test_modules_are_there_when_the_package_is_imported(name: str) -> None:
    program = f"import engine; assert engine.{name}.__name__ == 'engine.{name}'"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_name_that_somebody_replaces_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    own = engine.function
    with monkeypatch.context() as patch:
        patch.setattr(engine, "function", len)
        assert engine.function is len
    assert engine.function is own


@pytest.mark.parametrize("name", ["engine", "engine.tensor", "engine.scan", "engine.scalar.basic"])
def test_code_that_names_a_module_is_pickled_by_value(name: str) -> None:
    namespace: dict[str, Any] = {"module": import_module(name), "__name__": "__main__"}
    exec("def made(): return module", namespace)
    assert cloudpickle.loads(cloudpickle.dumps(namespace["made"]))() is namespace["module"]
