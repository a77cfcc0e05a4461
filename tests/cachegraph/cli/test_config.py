"""`cachegraph config`: values and their sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachegraph.cli.app import app
from cachegraph.declared_settings import SETTINGS


def test_every_setting_is_shown_with_its_value_and_its_source(
    tmp_path: Path, cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.cachegraph]\nthreads = 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CACHEGRAPH_REMOTE", "redis://user:secret@host/1")
    done = CliRunner().invoke(app, ["config"])
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[2 : 2 + len(SETTINGS)]}
    assert list(rows) == [setting.name for setting in SETTINGS]
    assert rows["directory"].split()[1:] == ["environment", str(cache_directory)]
    assert rows["threads"].split()[1:] == ["project's", "file", "2"]
    assert rows["max_size"].split()[1:] == ["default", "5GB"]
    assert "secret" not in done.output
    assert f"project's file: {tmp_path / 'pyproject.toml'}" in done.stdout
    document = json.loads(CliRunner().invoke(app, ["config", "--json"]).stdout)
    assert document["settings"]["threads"]["source"] == str(tmp_path / "pyproject.toml")
    assert document["problems"] == []


def test_mistakes_are_told_and_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.cachegraph]\ndirectory = "/evil"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CACHEGRAPH_MODE", "sometimes")
    monkeypatch.setenv("CACHEGRAPH_MOOD", "good")
    done = CliRunner().invoke(app, ["config"])
    assert done.exit_code == 1
    for said in ("CACHEGRAPH_MOOD does nothing", "a project may not set it", "found 'sometimes'"):
        assert said in done.stderr
    assert "/evil" not in done.stdout
    problems = json.loads(CliRunner().invoke(app, ["config", "--json"]).stdout)["problems"]
    assert len(problems) == 3
    assert (
        "a project may not set it" in CliRunner().invoke(app, ["doctor"], env={"CACHEGRAPH_MODE": ""}).stderr
    )
