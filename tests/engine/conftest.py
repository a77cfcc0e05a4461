"""Where the cache itself is not the point, the tests of a session share one: a kernel is compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a cache that all tests of this session may use."""
    return tmp_path_factory.mktemp("session") / "cache"


@pytest.fixture
def kernels_once(cache_directory: Path, session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the session's cache instead of the test's own."""
    monkeypatch.setenv("CACHEGRAPH_DIR", str(session_cache))
