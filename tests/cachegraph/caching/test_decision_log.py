"""CACHEGRAPH_LOG: a line for each hit, miss and bypass, on stderr or in a file, and never an error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cachegraph import Artifact, Cache
from cachegraph.settings import current_settings, mistakes

SHARED = "CACHEGRAPH_SHARED_DIR"


def decide(directory: Path) -> None:
    """Make a miss, a hit and a bypass."""
    cache = Cache(directory, namespace="toyc")
    for _ in range(2):
        cache.get_or_build({"source": "x"}, lambda: Artifact(b"code", summary="x\nof two"), len)
    cache.get_or_build({"source": object()}, lambda: b"code", len)
    cache.flush()


def words(line: str) -> str:
    """Return a line without its digits, seconds and time."""
    return re.sub(r"[0-9a-f]{12}:|[\d.]+ [um]?s\b", "#", line)


def test_explain_writes_a_line_a_decision_to_stderr(
    cache_directory: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CACHEGRAPH_LOG", "explain")
    decide(cache_directory)
    miss, hit, bypass = map(words, capfd.readouterr().err.splitlines())
    assert miss == (
        "cachegraph miss toyc/entry # x of two; never-seen; the index has no such key; built in #; 4 B"
    )
    assert hit == "cachegraph hit toyc/entry # x of two; loaded in #; saved #; 4 B"
    assert bypass.startswith(
        "cachegraph bypass toyc/entry: unfingerprintable; cannot fingerprint part 'source'"
    )


def test_a_path_names_a_file_that_processes_append_to(
    tmp_path: Path, cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHEGRAPH_LOG", str(tmp_path / "log"))
    decide(cache_directory)
    program = "import sys, cachegraph; print(cachegraph.Cache(sys.argv[1], namespace='toyc').get_or_build({'source': 'x'}, bytes, len).value)"
    subprocess.run([sys.executable, "-c", program, cache_directory], check=True, capture_output=True)
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["miss", "hit", "bypass", "hit"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \[\d+\] ", line) for line in lines)
    assert lines[0].split()[1] != lines[3].split()[1]


def test_the_tier_of_a_hit_is_told_if_it_is_not_the_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SHARED, str(tmp_path / "shared"))
    decide(tmp_path / "one")
    monkeypatch.setenv("CACHEGRAPH_LOG", "explain")
    decide(tmp_path / "two")
    first = capfd.readouterr().err.splitlines()[0]
    assert first.startswith("cachegraph hit")
    assert first.endswith(f"from {tmp_path / 'shared'}")


@pytest.mark.parametrize("is_file", [False, True])
def test_texts_of_others_are_logged_and_not_obeyed(
    is_file: bool,
    tmp_path: Path,
    cache_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    hostile = "\x1b]0;owned\x07 \x9b2J \u202egnp.exe\ncachegraph hit function 000000000000: forged"
    cache = Cache(cache_directory, namespace="toyc")
    cache.get_or_build({"source": "x"}, lambda: Artifact(b"code", summary=hostile), len)
    cache.flush()
    monkeypatch.setenv("CACHEGRAPH_LOG", str(tmp_path / "log") if is_file else "explain")
    Cache(cache_directory, namespace="toyc").get_or_build({"source": "x"}, bytes, len)
    [line] = ((tmp_path / "log").read_text() if is_file else capfd.readouterr().err).splitlines()
    assert line.isprintable()
    assert "\\x1b]0;owned\\x07 \\x9b2J \\u202egnp.exe cachegraph hit function" in line


@pytest.mark.parametrize("place", ["/dev/full", "/nowhere/log", "directory", "pipe that nobody reads"])
def test_a_log_that_cannot_be_written_is_said_once_and_harms_nothing(
    place: str,
    tmp_path: Path,
    cache_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    os.mkfifo(tmp_path / "pipe")
    places = {"directory": str(tmp_path), "pipe that nobody reads": str(tmp_path / "pipe")}
    monkeypatch.setenv("CACHEGRAPH_LOG", places.get(place, place))
    decide(cache_directory)
    assert [record.message.startswith("writing the log") for record in caplog.records] == [True]


def test_a_closed_stderr_is_no_error(cache_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_LOG", "explain")
    monkeypatch.setattr(sys, "stderr", None)
    decide(cache_directory)


def test_the_setting_is_explain_or_a_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_LOG": "./log"}).log == str(tmp_path / "log")
    wrong = {"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_LOG": "explian"}
    assert current_settings(wrong).log == ""
    [said] = mistakes(wrong)
    assert "explain, or a path with a slash" in said
