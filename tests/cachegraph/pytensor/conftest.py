"""The adapter is tested where PyTensor is installed, with a compilation directory of its own."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("pytensor") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True, scope="package")
def compilation_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where PyTensor keeps what it compiles; it reads the variable when it is imported first."""
    directory = tmp_path_factory.mktemp("compiledir")
    with pytest.MonkeyPatch.context() as patch:
        flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},base_compiledir={directory}".lstrip(",")
        patch.setenv("PYTENSOR_FLAGS", flags)
        yield directory


@pytest.fixture
def adapter() -> Iterator[Any]:
    """The adapter, installed for one test."""
    import cachegraph.pytensor

    cachegraph.pytensor.install()
    yield cachegraph.pytensor
    cachegraph.pytensor.uninstall()
