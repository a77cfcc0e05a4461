"""Nothing about the cache raises out of a program that only wants to compile: it runs, uncached, and is told once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachegraph.cache import default_cache
from cachegraph.environment import settings_in_force, unknown_variables
from cachegraph.errors import NoDirectoryError, SettingsError
from cachegraph.settings import current_settings

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 54321

HOMELESS = f"""
import json, logging, os, sys
import cachegraph.cache, engine, engine.tensor as pt, numpy as np
for name in list(os.environ):
    if name in ("HOME", "XDG_CACHE_HOME") or name.startswith("CACHEGRAPH_"):
        del os.environ[name]
if hasattr(os, "setresuid") and os.geteuid() == 0:
    os.setresuid({NOBODY}, 0, 0)  # whose home is asked for; what this interpreter lies in stays readable
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("cachegraph").addHandler(handler)
found = []
for case in json.loads(sys.argv[1]):
    os.environ.update(case)
    before = len(said)
    for _ in range(2):
        x = pt.vector()
        f = engine.function([x], pt.exp(x).sum())
        f(np.ones(3))
    found.append([f.cache_info.outcome, f.cache_info.reason, said[before:]])
    for name in case:
        del os.environ[name]
print(json.dumps(found))
"""

needs_root = pytest.mark.skipif(
    not hasattr(os, "setresuid") or os.geteuid() != 0, reason="only root can become a user without a home"
)


def run_homeless(*cases: dict[str, str]) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", HOMELESS, json.dumps(cases)],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


@needs_root
def test_a_user_without_a_home_compiles_without_a_cache_and_is_told_why_once(tmp_path: Path) -> None:
    cases: list[dict[str, str]] = [
        {},
        {"CACHEGRAPH_MODE": "off"},
        {"CACHEGRAPH_DIR": str(tmp_path / "cache")},
        {"CACHEGRAPH_DIR": str(tmp_path / "shared"), "CACHEGRAPH_TRUST": "published"},
        {"CACHEGRAPH_DIR": "/proc/no/such/place"},
        {"CACHEGRAPH_DIR": "~/cache"},
        {"CACHEGRAPH_DIR": "/proc/a", "CACHEGRAPH_SHARED_DIR": "~nobody-of-this-name/cache"},
    ]
    nowhere, off, kept, shared, unmade, tilde, other = run_homeless(*cases)
    assert nowhere[:2] == ["bypass", "no-directory"]
    assert len(nowhere[2]) == 1
    assert "the user 54321 has no home directory" in nowhere[2][0]
    assert off == ["bypass", "disabled", []]
    assert kept == ["hit", "", []]
    assert shared == ["hit", "", []]
    assert unmade[:2] == ["miss", "never-seen"]
    assert "failed" in unmade[2][0]
    assert tilde[:2] == ["bypass", "bad-setting"]
    assert "CACHEGRAPH_DIR: found '~/cache'" in tilde[2][0]
    assert other[:2] == ["bypass", "bad-setting"]
    assert "CACHEGRAPH_SHARED_DIR" in other[2][0]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CACHEGRAPH_MODE", "Off"),
        ("CACHEGRAPH_ON_MISS", "fail"),
        ("CACHEGRAPH_MAX_SIZE", "much"),
        ("CACHEGRAPH_TRUST", "everybody"),
        ("CACHEGRAPH_VERIFY_RATE", "often"),
    ],
)
def test_a_bad_value_means_no_cache_and_one_warning(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cachegraph.environment._noticed", set())
    monkeypatch.setenv(variable, value)
    for _ in range(3):
        absent = default_cache().absent
        assert absent is not None
        assert absent.reason == "bad-setting"
    assert not default_cache().settings.directory
    [said] = [record.getMessage() for record in caplog.records]
    assert f"{variable}: found '{value}'" in said


def test_who_forbids_compiling_is_obeyed_where_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    monkeypatch.setenv("CACHEGRAPH_MODE", "nonsense")
    assert settings_in_force()[0].on_miss == "error"


def test_a_variable_that_is_no_setting_is_named_once_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cachegraph.environment._noticed", set())
    monkeypatch.setattr("cachegraph.cache._default", None)
    monkeypatch.setenv("CACHEGRAPH_MODDE", "off")
    monkeypatch.setenv("CACHEGRAPH_CPU", "x86-64")
    monkeypatch.setenv("CACHEGRAPH_STRESS", "")
    assert default_cache().absent is None
    monkeypatch.setenv("CACHEGRAPH_MODE", "readonly")
    assert default_cache().settings.mode == "readonly"
    [said] = [record.getMessage() for record in caplog.records]
    assert "CACHEGRAPH_MODDE does nothing" in said
    assert said.endswith("CACHEGRAPH_MODE")
    assert list(unknown_variables()) == [said]


def test_the_mode_off_looks_for_no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachegraph.settings.user_cache_directory", lambda: pytest.fail("looked for"))
    assert current_settings({"CACHEGRAPH_MODE": "off"}).directory is None


def test_a_working_directory_that_is_gone_is_no_place_for_a_relative_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SettingsError, match="working directory is gone"):
        current_settings({"CACHEGRAPH_DIR": "cache"})
    monkeypatch.setenv("CACHEGRAPH_DIR", "cache")
    absent = settings_in_force()[1]
    assert absent is not None
    assert absent.reason == "bad-setting"


def test_no_home_is_an_error_to_who_asks_about_the_cache_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachegraph.user_directories._directory_of_user", lambda *_: "")
    with pytest.raises(NoDirectoryError, match="set CACHEGRAPH_DIR, HOME or XDG_CACHE_HOME"):
        current_settings({})
