"""Versions and sources of what builds an artifact: right, independent of place and time, and without importing it."""

import importlib.metadata
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cachegraph.toolchain
from cachegraph.errors import SourceError
from cachegraph.releases import package_version
from cachegraph.toolchain import COMPILERS, check_unchanged, source_digest, toolchain

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


# Sources --------------------------------------------------------------------------------------------------------------


def _tree(root: Path, files: dict[str, str]) -> Path:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return root


SOURCE = {"__init__.py": "", "a.py": "x = 1\n", "sub/b.py": "y = 2\n", "sub/deep/c.py": "z = 3\n"}


def test_where_when_and_in_which_order_files_were_written_does_not_matter(tmp_path: Path) -> None:
    one = _tree(tmp_path / "one", SOURCE)
    other = _tree(tmp_path / "elsewhere" / "other", dict(reversed(SOURCE.items())))
    os.utime(other / "a.py", (1, 1))
    assert source_digest(one) == source_digest(other)
    assert len(source_digest(one)) == 32


def test_the_order_of_a_listing_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = _tree(tmp_path / "one", SOURCE), _tree(tmp_path / "other", SOURCE)
    expected = source_digest(one)
    listed = cachegraph.toolchain._source_files
    monkeypatch.setattr(cachegraph.toolchain, "_source_files", lambda root: reversed(list(listed(root))))
    assert source_digest(other) == expected


def test_text_cannot_move_from_a_file_into_the_name_of_the_next(tmp_path: Path) -> None:
    two_files = _tree(tmp_path / "two", {"a.py": "1", "b.py": "2"})
    one_file = _tree(tmp_path / "one", {"a.py": "1b.py2"})
    assert source_digest(two_files) != source_digest(one_file)


def test_what_is_not_python_source_does_not_matter(tmp_path: Path) -> None:
    one = _tree(tmp_path / "one", SOURCE)
    other = _tree(
        tmp_path / "other", {**SOURCE, "py.typed": "", "__pycache__/a.cpython-311.pyc": "?", "notes.txt": "n"}
    )
    assert source_digest(one) == source_digest(other)


@pytest.mark.parametrize(
    "changed",
    [
        {**SOURCE, "a.py": "x = 2\n"},
        {**SOURCE, "sub/deep/c.py": "z = 3"},
        {**SOURCE, "new.py": ""},
        {name: content for name, content in SOURCE.items() if name != "__init__.py"},
        {**SOURCE, "a.py": SOURCE["sub/b.py"], "sub/b.py": SOURCE["a.py"]},
        {"__init__.py": "", "a.py": "x = 1\n", "sub_b.py": "y = 2\n", "sub/deep/c.py": "z = 3\n"},
    ],
)
def test_a_file_edited_added_removed_or_renamed_changes_the_digest(
    changed: dict[str, str], tmp_path: Path
) -> None:
    assert source_digest(_tree(tmp_path / "one", SOURCE)) != source_digest(_tree(tmp_path / "other", changed))


def test_a_directory_without_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no \*\.py file") as caught:
        source_digest(_tree(tmp_path, {"a.pyc": "compiled"}))
    assert caught.value.path == tmp_path
    with pytest.raises(SourceError, match="No such file"):
        source_digest(tmp_path / "archive.zip" / "package")


def test_the_source_of_this_package_can_be_read() -> None:
    assert source_digest(ROOT / "cachegraph") != source_digest(ROOT / "cachegraph" / "fingerprint")


def test_source_that_was_changed_after_a_time_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("x = 1\n")
    written = (tmp_path / "module.py").stat().st_ctime
    check_unchanged(tmp_path, written)
    with pytest.raises(SourceError, match="changed after it was imported") as caught:
        check_unchanged(tmp_path, written - 1.0)
    assert "module.py" in caught.value.found


def test_a_modification_time_set_back_does_not_hide_a_change(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    os.utime(path, (0, 0))
    with pytest.raises(SourceError):
        check_unchanged(tmp_path, path.stat().st_ctime - 1.0)
