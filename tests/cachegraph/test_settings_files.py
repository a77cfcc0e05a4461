"""Settings in files: the user's counts whole, a project's only where it can do no harm, and mistakes cost nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.cache import Cache, default_cache
from cachegraph.declared_settings import SETTINGS
from cachegraph.settings import current_settings, given, mistakes
from cachegraph.settings_files import project_file, user_file

ROOT = Path(__file__).resolve().parents[2]
Write = Callable[[str], Path]


@pytest.fixture
def write_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes the user's file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "cachegraph" / "config.toml"
    path.parent.mkdir(parents=True)

    def write(text: str) -> Path:
        path.write_text(text)
        path.chmod(0o600)
        return path

    return write


@pytest.fixture
def write_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes the project's file, above the working directory."""
    inner = tmp_path / "project" / "package" / "module"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)

    def write(text: str) -> Path:
        path = tmp_path / "project" / "pyproject.toml"
        path.write_text(text)
        return path

    return write


def test_the_environment_wins_over_the_project_that_over_the_user_that_over_the_default(
    write_user: Write, write_project: Write
) -> None:
    user = write_user('mode = "readonly"\nthreads = 3\nverify_rate = 0.5\nmax_size = "1GB"\n')
    project = write_project('[tool.cachegraph]\nmode = "verify"\nthreads = 2\n')
    found = current_settings({"CACHEGRAPH_NUM_THREADS": "1"})
    assert (found.threads, found.mode, found.verify_rate, found.max_size, found.on_miss) == (
        *(1, "verify", 0.5, 10**9),
        "compile",
    )
    sources = {name: source for name, (_, source) in given({"CACHEGRAPH_NUM_THREADS": "1"}).items()}
    assert sources["threads"] == "environment"
    assert sources["mode"] == str(project)
    assert sources["max_size"] == str(user)
    assert sources["on_miss"] == "default"
    assert list(mistakes({})) == []


@pytest.mark.parametrize("setting", [one for one in SETTINGS if not one.by_project], ids=lambda one: one.name)
def test_a_project_sets_nothing_that_says_where_entries_are_or_whose_are_believed(
    setting: object, write_user: Write, write_project: Write
) -> None:
    value = {
        "directory": '"/evil"',
        "shared_directory": '"/evil"',
        "max_size": '"1B"',
        "trust": '"signed"',
        "remotes": '"https://evil/x"',
        "log": '"/evil"',
    }[setting.name]  # type: ignore[attr-defined]
    before = current_settings({})
    path = write_project(f'[tool.cachegraph]\n{setting.name} = {value}\nmode = "readonly"\n')  # type: ignore[attr-defined]
    assert current_settings({}) == before._replace(mode="readonly")
    [said] = mistakes({})
    assert f"in {path}, {setting.name} does nothing: a project may not set it" in said  # type: ignore[attr-defined]


def test_the_projects_own_settings_are_those_that_only_cost_time() -> None:
    assert {one.name for one in SETTINGS if one.by_project} == {
        *("mode", "on_miss", "verify_rate", "cpu", "threads")
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("thread = 3", "'thread' does nothing: no such setting; the nearest is threads"),
        ("mode = 3", "mode is 3; set it to one of readwrite, readonly"),
        ("max_size = -1", "max_size is -1; set it to a size such as 5GB, or 0 for no limit"),
        ('mode = "sometimes"', "mode is 'sometimes'"),
        ("threads = true", "threads is True"),
        ('threads = "2"', "threads is '2'"),
        ("verify_rate = 2", "verify_rate is 2"),
        ('directory = "here"', "directory is 'here'; set it to an absolute path"),
        ("directory = 3", "directory is 3"),
        ('directory = "/a\\u0000b"', "directory is '/a\\x00b'; set it to an absolute path"),
        ('log = "/a\\u0000b"', "log is '/a\\x00b'"),
        ('[tool.cachegraph]\nmode = "off"', "settings are at the top of this file, without a table"),
        ('log = "here/log"', "log is 'here/log'"),
        ('remotes = ["https://a b"]', "remotes is ['https://a b']"),
        ('remotes = ["https://u:secret@h/x", 3]', "remotes is ['https://***@h/x', 3]"),
        ("[mode]\nx = 1", "mode is {'x': 1}"),
        ('"a\\u001b[2J" = 1', "'a\\x1b[2J' does nothing"),
    ],
)
def test_a_mistake_in_a_file_is_said_and_the_rest_counts(line: str, said: str, write_user: Write) -> None:
    write_user(f"on_miss = 'error'\n{line}\n")
    assert current_settings({}).on_miss == "error"
    [found] = mistakes({})
    assert said in found


@pytest.mark.parametrize("content", ["mode = ", "\0", "x = " + "[" * 5000, "mode = 1\nmode = 2"])
def test_a_file_that_is_no_toml_counts_as_none_and_is_said(content: str, write_user: Write) -> None:
    path = write_user(content)
    assert current_settings({}).mode == "readwrite"
    [found] = mistakes({})
    assert str(path) in found
    assert "is no TOML" in found


def test_bytes_that_are_no_text_and_a_huge_file_count_as_none(write_user: Write) -> None:
    path = write_user("")
    for content in (b"mode = '\xff'", b"#" * (1 << 21)):
        path.write_bytes(content)
        assert current_settings({}).mode == "readwrite"
        assert len(list(mistakes({}))) == 1


def test_a_pipe_in_place_of_a_file_does_not_block(write_user: Write, write_project: Write) -> None:
    user, project = write_user(""), write_project("")
    for path in (user, project):
        path.unlink()
        os.mkfifo(path)
    assert current_settings({}).mode == "readwrite"
    assert len(list(mistakes({}))) == 1, "a project's is no file with the table"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_of_the_user_that_others_can_write_counts_for_nothing(mode: int, write_user: Write) -> None:
    write_user('trust = "signed"').chmod(mode)
    assert current_settings({}).trust == "private"
    [found] = mistakes({})
    assert "others can write it" in found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_counts_for_nothing(write_user: Write, write_project: Write) -> None:
    for path in (write_user('mode = "off"'), write_project('[tool.cachegraph]\non_miss = "error"')):
        os.chown(path, 54321, 54321)
    found = current_settings({})
    assert (found.mode, found.on_miss) == ("readwrite", "compile")
    assert len(list(mistakes({}))) == 2


def test_the_nearest_file_with_the_table_is_the_projects(write_project: Write, tmp_path: Path) -> None:
    path = write_project("[tool.cachegraph]\nthreads = 2\n")
    near = tmp_path / "project" / "package" / "pyproject.toml"
    near.write_text('[project]\nname = "[tool.cachegraph"\n')
    found = project_file()
    assert found is not None
    assert (found.path, dict(found.texts)) == (str(path), {"threads": "2"})
    near.write_text("[tool.cachegraph]\nthreads = 3\n")
    assert current_settings({}).threads == 3


def test_a_changed_file_counts_at_the_next_look(write_user: Write) -> None:
    path = write_user('mode = "off"')
    assert current_settings({}).mode == "off"
    path.write_text('mode = "verify"')
    assert current_settings({}).mode == "verify"
    path.unlink()
    assert current_settings({}).mode == "readwrite"


def test_a_working_directory_that_is_gone_has_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert project_file() is None
    assert current_settings({"CACHEGRAPH_DIR": "/a"}).mode == "readwrite"


def test_a_ban_on_compiling_in_a_file_holds_where_the_environment_is_wrong(
    write_user: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_user('on_miss = "error"')
    monkeypatch.setenv("CACHEGRAPH_TRUST", "everybody")
    assert Cache().settings.on_miss == "error"


def test_another_process_caches_where_the_file_says_and_says_mistakes_once(
    write_user: Write, tmp_path: Path
) -> None:
    write_user(f'directory = "{tmp_path}/kept"\nmood = "good"\n')
    program = (
        "import cachegraph\n"
        "for _ in range(2):\n"
        "    cache = cachegraph.Cache(namespace='a')\n"
        "    print(cache.get_or_build({'n': 1}, lambda: b'x', len).outcome)\n"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CACHEGRAPH_")}
    for expected in ("miss\nhit\n", "hit\nhit\n"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environ | {"PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.stdout == expected
        assert done.stderr.count("'mood' does nothing") == 1
    assert (tmp_path / "kept" / "v1" / "index.sqlite").exists()


def test_a_log_that_is_no_place_is_said_and_leaves_the_cache_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cachegraph.environment._noticed", set())
    monkeypatch.setenv("CACHEGRAPH_LOG", "explian")
    for _ in range(2):
        assert default_cache().absent is None
    [said] = [record.getMessage() for record in caplog.records]
    assert "CACHEGRAPH_LOG: found 'explian'" in said


def test_without_files_nothing_of_them_is_imported() -> None:
    program = "import sys, cachegraph.settings as s; s.current_settings({'CACHEGRAPH_DIR': '/a'}); print('tomllib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n", "also beside a pyproject.toml without the table"


def test_there_is_no_file_by_default() -> None:
    assert user_file() is None
    assert json.dumps(list(mistakes({}))) == "[]"
