"""Fixtures for the adapter's tests, which run only if PyTensor is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

if importlib.util.find_spec("pytensor") is None:
    collect_ignore_glob = ["*test_*.py"]


@pytest.fixture
def adapter() -> Iterator[Any]:
    """Install the adapter for one test."""
    import cachegraph.pytensor

    cachegraph.pytensor.install()
    yield cachegraph.pytensor
    cachegraph.pytensor.uninstall()
