"""What a user installs has everything it needs: from a wheel, and from a checkout in editable mode."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORE_AND_READ = """
from cachegraph import CacheKey, default_cache
from cachegraph.cache import Artifact
key = CacheKey.build("kernel", {"scheme": b"a test of the installation"})
assert default_cache().store(key, Artifact(b"payload")), "not stored"
assert default_cache().lookup(key).payload == b"payload"
"""


def run(*words: str | Path, cwd: Path) -> str:
    """Run a command with nothing on PYTHONPATH; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, directory: Path) -> Path:
    """Return the wheel ("standard" or "editable") built with the backend that pyproject.toml names."""
    hook = {"standard": "build_wheel", "editable": "build_editable"}[kind]
    code = f"import sys; from hatchling.build import {hook}; print({hook}(sys.argv[1]))"
    name = run(sys.executable, "-c", code, directory, cwd=ROOT).split()[-1]
    return directory / name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("standard", tmp_path_factory.mktemp("wheel"))


def installed(kind: str, directory: Path) -> Path:
    """Return the Python of a new environment with the wheel of `kind`; it borrows the dependencies
    installed here.
    """
    environment = directory / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    site = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=directory).strip()
    )
    with zipfile.ZipFile(build(kind, directory)) as archive:
        archive.extractall(site)
    # Last in the path, so that of two installations of cachegraph the new one counts. A .pth file in the borrowed
    # directory is not read, so an editable installation there is not seen at all.
    (site / "zz_borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_holds_both_packages_with_their_types_and_the_migrations(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    migrations = {path.name for path in (ROOT / "migrations").glob("*.sql")}
    assert migrations
    assert {f"cachegraph/migrations/{name}" for name in migrations} <= names
    assert {"cachegraph/py.typed", "engine/py.typed", "cachegraph/cache.py", "engine/__init__.py"} <= names


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"cachegraph", "engine", "cachegraph_pytensor.pth", "cachegraph-0.1.0.dist-info"}


@pytest.mark.parametrize("kind", ["standard", "editable"])
def test_an_installation_finds_its_migrations_and_opens_a_store(
    kind: str, tmp_path: Path, cache_directory: Path
) -> None:
    python = installed(kind, tmp_path)
    origin = run(python, "-c", "import cachegraph; print(cachegraph.__file__)", cwd=tmp_path).strip()
    assert Path(origin).is_relative_to(tmp_path if kind == "standard" else ROOT)
    run(python, "-c", STORE_AND_READ, cwd=tmp_path)
    assert list(cache_directory.rglob("index.sqlite"))
