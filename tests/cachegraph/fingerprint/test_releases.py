"""The metadata of installed distributions, read from the directories beside their packages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cachegraph.fingerprint import origin
from cachegraph.fingerprint.releases import metadata_in, package_version, recorded_files


def test_metadata_is_found_under_normalized_names_with_all_versions(tmp_path: Path) -> None:
    for entry in (
        "My.Own-1.0.dist-info",
        "my_own-1.1.dist-info",
        "other-2.dist-info",
        "my_own",
        "x.egg-info",
    ):
        (tmp_path / entry).mkdir()
    found = metadata_in(str(tmp_path))
    assert sorted(found) == ["my_own", "other"]
    assert sorted(found["my_own"]) == [("My.Own-1.0.dist-info", "1.0"), ("my_own-1.1.dist-info", "1.1")]
    assert metadata_in(str(tmp_path / "absent")) == {}


def test_the_version_beside_a_package_is_that_of_its_metadata(monkeypatch, tmp_path: Path) -> None:
    place = tmp_path / "site"
    (place / "just_beside").mkdir(parents=True)
    (place / "just_beside" / "__init__.py").write_text("")
    for version in ("1.0", "2.0", "3.0"):
        (place / f"just_beside-{version}.dist-info").mkdir()
    for version in ("1.0", "2.0"):  # an uninstallation that failed has left the third
        (place / f"just_beside-{version}.dist-info" / "METADATA").write_text("Name: just_beside\n")
    monkeypatch.syspath_prepend(str(place))
    assert package_version("just-beside") == "1.0 or 2.0"
    assert recorded_files("just-beside") == ""


def test_files_of_a_package_from_no_index_are_recorded_beside_it(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "built_here").mkdir()
    (tmp_path / "built_here" / "__init__.py").write_text("")
    information = tmp_path / "built_here-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: built_here\nVersion: 1.0\n")
    (information / "RECORD").write_text("built_here/__init__.py,sha256=a,0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert recorded_files("built-here") == ""
    (information / "direct_url.json").write_text("{}")
    assert recorded_files("built-here") != ""


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "/", "real", "real/deep", "link", "link/deep", "link/..", "real/../link/deep", "gone/x"],
)
def test_real_directories_are_those_of_the_system(monkeypatch, tmp_path: Path, path: str) -> None:
    (tmp_path / "elsewhere" / "place" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "place")
    (tmp_path / "real" / "deep" / "up").symlink_to("..")
    monkeypatch.chdir(tmp_path)
    origin._real_directory.cache_clear()
    for directory in (path, os.path.join(tmp_path, path), os.path.join(path, "deep", "up")):
        assert origin._real_directory(directory) == os.path.realpath(directory)
    origin._real_directory.cache_clear()
