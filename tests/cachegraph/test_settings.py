"""Settings are read when asked for, from the environment, and each is declared in one table."""

import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from cachegraph.declared_settings import SETTINGS
from cachegraph.errors import SettingsError
from cachegraph.settings import Settings, current_settings

ROOT = Path(__file__).resolve().parents[2]


def test_every_setting_is_declared() -> None:
    assert [setting.name for setting in SETTINGS] == list(Settings._fields)
    assert len({setting.variable for setting in SETTINGS}) == len(SETTINGS)


def test_an_empty_environment_gives_the_defaults() -> None:
    found = current_settings({})
    assert (found.mode, found.on_miss) == ("readwrite", "compile")
    assert found.directory == platformdirs.user_cache_path("cachegraph", appauthor=False)
    assert current_settings({"CACHEGRAPH_DIR": "", "CACHEGRAPH_MODE": "", "CACHEGRAPH_ON_MISS": ""}) == found


def test_variables_set_the_settings() -> None:
    found = current_settings(
        {"CACHEGRAPH_DIR": "/a/b", "CACHEGRAPH_MODE": "readonly", "CACHEGRAPH_ON_MISS": "error"}
    )
    assert found == Settings(Path("/a/b"), "readonly", "error")


def test_a_shared_directory_is_made_absolute_and_is_none_when_unset(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_SHARED_DIR": ""}).shared_directory is None
    monkeypatch.chdir(tmp_path)
    found = current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_SHARED_DIR": "project"})
    assert found.shared_directory == tmp_path / "project"


def test_the_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("one", "two"):
        monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path / name))
        assert current_settings().directory == tmp_path / name
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    assert current_settings().mode == "off"


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is read on Linux")
def test_the_default_directory_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        assert current_settings({}).directory == tmp_path / name / "cachegraph"


def test_a_relative_directory_is_relative_to_where_the_process_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert current_settings({"CACHEGRAPH_DIR": "cache"}).directory == tmp_path / name / "cache"


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert current_settings({"CACHEGRAPH_DIR": "~/cache"}).directory == tmp_path / "cache"


@pytest.mark.parametrize(
    ("variable", "allowed"),
    [
        ("CACHEGRAPH_MODE", ("readwrite", "readonly", "off", "verify")),
        ("CACHEGRAPH_ON_MISS", ("compile", "error")),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_those_that_are(
    variable: str, allowed: tuple[str, ...]
) -> None:
    with pytest.raises(SettingsError, match=f"{variable}: found 'Readwrite'; .*{allowed[-1]}") as caught:
        current_settings({variable: "Readwrite"})
    assert (caught.value.name, caught.value.found, caught.value.allowed) == (variable, "Readwrite", allowed)


def test_the_limit_is_a_size_with_its_unit_and_none_when_zero() -> None:
    assert current_settings({"CACHEGRAPH_DIR": "/a"}).max_size == 5_000_000_000
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_MAX_SIZE": "1.5 GiB"}).max_size == 3 << 29
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_MAX_SIZE": "0"}).max_size == 0
    with pytest.raises(SettingsError, match=r"CACHEGRAPH_MAX_SIZE: found 'much'; set it to a size"):
        current_settings({"CACHEGRAPH_MAX_SIZE": "much"})


def test_importing_reads_no_variable_and_makes_no_directory(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    program = (
        "import os, sys; read = []; os.environ = type('Noting', (dict,), dict("
        "get=lambda self, name, other=None: read.append(name) or other,"
        "__getitem__=lambda self, name: read.append(name)"
        "))(); import cachegraph, cachegraph.settings, cachegraph.key;"
        "assert not [name for name in read if name.startswith(('CACHEGRAPH', 'XDG'))], read;"
        "print(sorted({'numpy', 'numba', 'sqlalchemy', 'platformdirs', 'hashlib'} & set(sys.modules)))"
    )
    environ = {"PYTHONPATH": str(ROOT), "CACHEGRAPH_DIR": str(directory), "CACHEGRAPH_MODE": "nonsense"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert not directory.exists()


@pytest.mark.parametrize("rate", ["0", "-1", "1.5", "nan", "many"])
def test_the_share_that_is_verified_is_above_nothing_and_at_most_all(rate: str) -> None:
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_VERIFY_RATE": "0.5"}).verify_rate == 0.5
    assert current_settings({"CACHEGRAPH_DIR": "/a"}).verify_rate == 1.0
    with pytest.raises(SettingsError, match=r"CACHEGRAPH_VERIFY_RATE: found .* above 0 and up to 1"):
        current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_VERIFY_RATE": rate})
