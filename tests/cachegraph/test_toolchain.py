"""Versions and sources of what builds an artifact: right, independent of place and time, and without importing it."""

import importlib.metadata
import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cachegraph.fingerprint.releases import package_version
from cachegraph.toolchain import COMPILERS, toolchain

ROOT = Path(__file__).resolve().parents[2]
_fresh = itertools.count()


def _install(site: Path, name: str, *versions: str, package: bool = True, metadata: bool = True) -> None:
    if package:
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("raise RuntimeError('imported')\n")
    for version in versions:
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        if metadata:
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture
def name() -> str:
    """A distribution nobody has asked about in this process."""
    return f"fresh_dist_{next(_fresh)}"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_version_is_the_one_the_metadata_gives(compiler: str) -> None:
    assert package_version(compiler) == importlib.metadata.version(compiler)


def test_the_toolchain_names_python_and_the_compilers() -> None:
    found = toolchain()
    assert list(found) == ["python", "numpy", "numba", "llvmlite"]
    assert found["python"] == f"{sys.implementation.name} {sys.implementation.cache_tag}"
    assert found["numba"] == importlib.metadata.version("numba")


def test_a_caller_that_changes_the_toolchain_it_got_changes_nobody_elses() -> None:
    toolchain().clear()
    assert list(toolchain()) == ["python", "numpy", "numba", "llvmlite"]


def test_nothing_is_imported_to_find_a_version() -> None:
    program = (
        "import sys; from cachegraph.toolchain import toolchain; toolchain();"
        "print(sorted({'numpy', 'numba', 'llvmlite', 'importlib.metadata'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_version_is_found_beside_the_package(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, name, "1.2.3rc1+local")
    _install(tmp_path, f"{name}_plugin", "9")
    monkeypatch.syspath_prepend(tmp_path)
    assert package_version(name) == "1.2.3rc1+local"


def test_dashes_dots_and_case_do_not_matter(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, name, package=True)
    _install(tmp_path, name.replace("_", ".").title(), "1.5", package=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(importlib.metadata, "version", None)
    assert package_version(name.replace("_", "-").upper()) == "1.5"


def test_a_module_of_one_file_has_a_version(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, name, "3.1", package=False)
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert package_version(name) == "3.1"


def test_an_editable_install_has_its_metadata_elsewhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path / "checkout", name)
    _install(tmp_path / "site", name, "2.0.dev1", package=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "checkout")
    assert package_version(name) == "2.0.dev1"


def test_metadata_left_behind_by_a_failed_uninstall_does_not_count(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, name, "2.0")
    _install(tmp_path, name, "1.0", package=False, metadata=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert package_version(name) == "2.0"


def test_two_versions_side_by_side_are_both_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, name, "2.0", "1.0")
    monkeypatch.syspath_prepend(tmp_path)
    assert package_version(name) == "1.0 or 2.0"


def test_a_package_that_is_not_installed_is_an_import_error(name: str) -> None:
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        package_version(name)


def test_a_missing_compiler_is_absent_from_the_toolchain(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "cachegraph", tmp_path / "cachegraph")
    program = (
        "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + sys.argv[1:];"
        "import types; sys.modules['xxhash'] = types.ModuleType('xxhash');"
        "from cachegraph.toolchain import toolchain; print(toolchain()['numba'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "absent"
