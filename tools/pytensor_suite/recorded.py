"""A pytest plugin: records what becomes of each test, and installs the adapter, or makes a mode the
default one, before the tests are collected.

Loaded with `-p recorded`. CACHEGRAPH_SUITE_ADAPTER=1 asks for the adapter, CACHEGRAPH_SUITE_MODE names a
mode to be the default one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytensor_tests.recording import RECORD, Recorder

ADAPTER = "CACHEGRAPH_SUITE_ADAPTER"
MODE = "CACHEGRAPH_SUITE_MODE"


def pytest_configure(config: pytest.Config) -> None:
    """Record this run, unless the plugin is imported for something else."""
    if RECORD in os.environ:
        config.pluginmanager.register(AdapterRecorder(Path(os.environ[RECORD])))


class AdapterRecorder(Recorder):
    """A recorder of tests on the PyTensor that is installed."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        # Not earlier: the flags of PyTensor's own conftest are set when the session starts.
        import pytensor

        suite = Path.cwd().resolve()
        if suite in Path(pytensor.__file__).resolve().parents:
            raise pytest.UsageError(f"PyTensor was imported from {suite}, not from where it is installed")
        if os.environ.get(ADAPTER) == "1":
            import cachegraph.pytensor

            cachegraph.pytensor.install()
        if MODE in os.environ:
            make_default(os.environ[MODE])

    def counters(self) -> dict[str, Any] | None:
        """Return the counters of this process's caches, None without the adapter."""
        if os.environ.get(ADAPTER) != "1":
            return None
        import cachegraph

        return cachegraph.counters()._asdict()


def make_default(mode: str) -> None:
    """Have PyTensor use a mode of the engine's, and its linker, where none is asked for."""
    import pytensor

    import engine.pytensor
    from engine.pytensor.solvers import LINKER

    engine.pytensor.register()
    pytensor.config.linker = LINKER
    pytensor.config.mode = mode
