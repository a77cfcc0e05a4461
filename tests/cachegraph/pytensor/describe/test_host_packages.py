"""A PyTensor that is no release is described by its source, which must be what was imported."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cachegraph.pytensor
from cachegraph.pytensor.describe import host_packages
from cachegraph.pytensor.describe.host_packages import encode_host_code, is_edited

ROOT = Path(__file__).parents[4]
BEFORE_A_PROCESS = 0.3
"""Seconds; the kernel gives a process's start to a few hundredths of a second."""
DESCRIBE = """
import sys, pathlib
import pytensor, pytensor.tensor as pt
if len(sys.argv) > 1:
    path = pathlib.Path(pytensor.__file__).parent / "gradient.py"
    path.write_text(path.read_text() + "# edited while it is loaded\\n")
from tests.cachegraph.pytensor.describing import key_of
x = pt.vector("x")
print(pytensor.__file__, key_of([x], pt.exp(x)))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the installed PyTensor, without an installation record."""
    spec = importlib.util.find_spec("pytensor")
    assert spec is not None
    assert spec.origin is not None
    target = tmp_path / "checkout" / "pytensor"
    shutil.copytree(Path(spec.origin).parent, target, ignore=shutil.ignore_patterns("__pycache__"))
    time.sleep(BEFORE_A_PROCESS)
    return target


def described(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(checkout.parent), str(ROOT)))
    return subprocess.run(
        [sys.executable, "-c", DESCRIBE, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=checkout.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_an_edited_checkout_is_another_pytensor(checkout: Path) -> None:
    first = described(checkout)
    assert first.stdout.startswith(str(checkout)), first.stderr
    assert described(checkout).stdout == first.stdout
    rewrite = checkout / "tensor" / "rewriting" / "math.py"
    rewrite.write_text(rewrite.read_text() + "\nANOTHER = 1\n")
    time.sleep(BEFORE_A_PROCESS)
    edited = described(checkout)
    assert edited.returncode == 0, edited.stderr
    assert edited.stdout.split()[0] == first.stdout.split()[0]
    assert edited.stdout != first.stdout


@pytest.mark.slow
def test_a_checkout_that_is_edited_while_it_is_loaded_is_refused(checkout: Path) -> None:
    done = described(checkout, "edit")
    assert done.returncode != 0
    assert "SourceError" in done.stderr
    assert "gradient.py, which was changed after this process began" in done.stderr


def test_a_release_whose_files_were_edited_is_read_like_a_checkout(tmp_path: Path) -> None:
    package, record = tmp_path / "pytensor" / "graph", tmp_path / "pytensor-3.3.7.dist-info" / "RECORD"
    for path in (package / "op.py", record):
        path.parent.mkdir(parents=True)
        path.write_text("")
    assert not is_edited(str(package.parent))
    later = record.stat().st_mtime + 3600.0
    os.utime(package / "op.py", (later, later))
    assert is_edited(str(package.parent))


@pytest.mark.parametrize("place", ["deep/er/op.py", "linked/op.py", "op.py"])
def test_an_edited_file_is_found_at_any_depth_and_behind_links(tmp_path: Path, place: str) -> None:
    package = tmp_path / "site" / "pytensor"
    record = tmp_path / "site" / "pytensor-3.3.7.dist-info" / "RECORD"
    (tmp_path / "elsewhere").mkdir()
    (package / "deep" / "er").mkdir(parents=True)
    (package / "deep" / "er" / "notes.txt").write_text("")
    (package / "linked").symlink_to(tmp_path / "elsewhere")
    record.parent.mkdir()
    for path in (record, package / "__init__.py", package / place):
        path.write_text("")
    open_files = len(os.listdir("/proc/self/fd"))
    assert not is_edited(str(package))
    later = record.stat().st_mtime + 3600.0
    os.utime(package / "deep" / "er" / "notes.txt", (later, later))
    assert not is_edited(str(package))
    os.utime(package / place, (later, later))
    assert is_edited(str(package))
    assert len(os.listdir("/proc/self/fd")) == open_files


def test_the_installed_releases_are_as_they_were_installed() -> None:
    for name in ("pytensor", "pymc"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        assert not is_edited(str(Path(spec.origin).parent))


def test_the_key_has_the_source_of_every_floor_of_the_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    roots: list[Path] = []
    monkeypatch.setattr(host_packages, "imported_source", lambda root, _: roots.append(root) or b"")
    monkeypatch.setattr(host_packages, "_source_digest_of", host_packages._source_digest_of.__wrapped__)
    encode_host_code()
    assert Path(cachegraph.pytensor.__file__).parent in roots
