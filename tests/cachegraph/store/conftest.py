"""Keys, stores and new processes for the tests of the store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cachegraph.key import CacheKey
from cachegraph.store.local.store import LocalStore

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def key() -> Callable[..., CacheKey]:
    """Return a function from any text to the key that describes it."""

    def of(text: object, level: str = "kernel") -> CacheKey:
        return CacheKey.build(level, {"scheme": b"test", "graph": str(text).encode()})

    return of


@pytest.fixture
def store(cache_directory: Path) -> Iterator[LocalStore]:
    opened = LocalStore(cache_directory)
    yield opened
    opened.close()


@pytest.fixture
def start_python() -> Callable[..., subprocess.Popen[str]]:
    """Return a function that starts a program in a new interpreter, which can import this checkout."""

    def start(program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)

    return start


@pytest.fixture
def run_python(start_python: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """Return a function that runs a program in a new interpreter and returns its output."""

    def run(program: str, *arguments: object) -> str:
        process = start_python(program, *arguments)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return output

    return run
