"""The tests in a checkout of PyTensor: copied away from its package, listed, and shared out."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path


def copied(checkout: Path, directory: Path) -> Path:
    """Copy the tests of `checkout` and their settings, but not its PyTensor, which would be imported
    instead.
    """
    suite = directory / "suite"
    if suite.exists():
        return suite
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as half:
        shutil.copytree(checkout / "tests", Path(half, "tests"))
        for name in ("conftest.py", "pyproject.toml"):
            shutil.copy(checkout / name, Path(half, name))
        try:
            Path(half).rename(suite)
        except OSError:
            if not suite.exists():  # else another shard was first
                raise
    return suite


def test_files(suite: Path, tests: list[str] | tuple[str, ...]) -> list[str]:
    """Return the files of tests below `tests`, relative to `suite`, in a fixed order."""
    found = [
        path
        for name in tests
        for path in ([suite / name] if (suite / name).is_file() else (suite / name).rglob("test_*.py"))
    ]
    return sorted({str(path.relative_to(suite)) for path in found})


def shard(files: list[str], which: str) -> list[str]:
    """Return the K-th of N parts of `files`, for "K/N"."""
    number, count = map(int, which.split("/"))
    if not 1 <= number <= count:
        raise SystemExit(f"--shard {which}: the first of the two numbers is from 1 to the second")
    return files[number - 1 :: count]
