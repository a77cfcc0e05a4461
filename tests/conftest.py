"""Every test gets a cache directory of its own; the user's cannot be reached from a test or from its
subprocesses.

Nor can the directory in which PyTensor keeps what it compiles: what another release of it left
there need not be readable.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.extensions.building import Extensions

# How fast the machine is, and how loaded, fails no test.
settings.register_profile("any-machine", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("any-machine")

HOME_VARIABLES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def pytest_configure(config: pytest.Config) -> None:
    """Give PyTensor an empty compilation directory; it reads the variable when a module of tests first
    imports it.
    """
    if hasattr(config, "workerinput"):  # one of several processes, which has it from the one that started it
        return
    directory = tempfile.mkdtemp(prefix="cachegraph-tests-pytensor-")
    config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},base_compiledir={directory}".lstrip(",")
    os.environ["PYTENSOR_FLAGS"] = flags


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than there are processors: tests wait for servers, and for each other's
    processes."""
    return 1 + len(os.sched_getaffinity(0))


def pytest_collection_finish() -> None:
    """Take what the modules of tests loaded out of later garbage collections, which many tests make."""
    gc.collect()
    gc.freeze()


def is_setting(name: str) -> bool:
    """Tell whether the environment variable `name` sets the cache (and not the length of the tests)."""
    return name.startswith("CACHEGRAPH_") and name != "CACHEGRAPH_STRESS"


@pytest.fixture(autouse=True, scope="session")
def unreachable_user_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the whole session a home that is empty and goes away; subprocesses inherit it."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in filter(is_setting, list(os.environ)):
            patch.delenv(name)
        for name in HOME_VARIABLES:
            patch.setenv(name, str(home if name == "HOME" else home / name.lower()))
        patch.setenv("CACHEGRAPH_DIR", str(home / "cache-of-no-test"))
        yield home


@pytest.fixture(scope="session")
def cache_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the paths of folders, one after the other. `mktemp` would look at all earlier ones each time."""
    parent = tmp_path_factory.mktemp("caches")
    return (parent / str(number) for number in count())


@pytest.fixture(autouse=True)
def cache_directory(
    cache_directories: Iterator[Path], monkeypatch: pytest.MonkeyPatch, unreachable_user_cache: Path
) -> Path:
    """Return the cache directory (not made yet) that this test's process and its subprocesses use."""
    folder = next(cache_directories)
    folder.mkdir()
    directory = folder / "cachegraph"
    monkeypatch.setenv("CACHEGRAPH_DIR", str(directory))
    for name in ("CACHEGRAPH_MODE", "CACHEGRAPH_ON_MISS"):
        monkeypatch.delenv(name, raising=False)
    return directory


@pytest.fixture(scope="session")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Extensions:
    """Return extensions of every kind, built for this session; takes seconds to a minute, when a test
    first needs it.
    """
    return Extensions(tmp_path_factory.mktemp("extensions"))
