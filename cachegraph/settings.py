"""The settings a user can touch, read from the environment each time they are asked for, never at import.

Each setting is declared once in `SETTINGS`: its variable, what it may be, and whether it is part of a cache key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

from cachegraph.errors import NoDirectoryError, SettingsError
from cachegraph.object_code.cpu import VARIABLE, compiled_levels
from cachegraph.units import parse_size

DEFAULT_MAX_SIZE = "5GB"

_KEY = r"ed25519:[\w-]{43}"
_TRUST = re.compile(rf"(private|published(:[0-9]+)?|group:{_KEY}(,{_KEY})*)?", re.ASCII)
Mode = Literal["readwrite", "readonly", "off", "verify"]
OnMiss = Literal["compile", "error"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Declaration of one setting; `allowed` lists its values, the default first (empty: any text)."""

    name: str
    variable: str
    allowed: tuple[str, ...]
    in_key: bool
    why: str


SETTINGS = (
    Setting("directory", "CACHEGRAPH_DIR", (), False, "where an entry is kept says nothing about what it is"),
    Setting(
        "mode",
        "CACHEGRAPH_MODE",
        ("readwrite", "readonly", "off", "verify"),
        False,
        "how the store is used, not what is built",
    ),
    Setting(
        "on_miss", "CACHEGRAPH_ON_MISS", ("compile", "error"), False, "whether to build, not what is built"
    ),
    Setting(
        "shared_directory",
        "CACHEGRAPH_SHARED_DIR",
        (),
        False,
        "where an entry is kept says nothing about what it is",
    ),
    Setting("max_size", "CACHEGRAPH_MAX_SIZE", (), False, "how much is kept says nothing about what it is"),
    Setting(
        "trust",
        "CACHEGRAPH_TRUST",
        ("private", "published", "published:UID", "group:KEY,KEY,..., each as `cachegraph key` prints it"),
        False,
        "whose entries are believed, not what they are",
    ),
    Setting("verify_rate", "CACHEGRAPH_VERIFY_RATE", (), False, "how much is checked, not what is built"),
    Setting("cpu", VARIABLE, (), False, "which of the stored code is run: an entry has that of every level"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force: an absolute `directory`, how the cache is used, what a miss does, a directory to share.

    In the mode off no directory is looked for: it is None, as it is where there is no cache.
    `max_size` is the most bytes that the cache on this node holds; 0 sets no limit. `trust` says whose entries are
    believed where others can write (store/trust.py). `verify_rate` is the share of hits that the mode verify builds anew.
    `cpu` is the best CPU level whose code is to be run (cpu.py); empty for the best that the machine has.
    """

    directory: Path | None
    mode: Mode
    on_miss: OnMiss
    shared_directory: Path | None = None
    max_size: int = parse_size(DEFAULT_MAX_SIZE)
    trust: str = "private"
    verify_rate: float = 1.0
    cpu: str = ""


def current_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings `environ` (default: the process's environment) asks for now.

    A variable that is unset or empty gives the default. Raises SettingsError on a value that is not allowed, and
    NoDirectoryError where there is no place for a cache.
    """
    get = (os.environ if environ is None else environ).get
    mode, on_miss, trust = (get(f"CACHEGRAPH_{name}") or "" for name in ("MODE", "ON_MISS", "TRUST"))
    directory = "" if mode == "off" else cache_directory(environ)
    shared = _absolute("CACHEGRAPH_SHARED_DIR", get("CACHEGRAPH_SHARED_DIR") or "")
    size = get("CACHEGRAPH_MAX_SIZE") or DEFAULT_MAX_SIZE
    rate, cpu = get("CACHEGRAPH_VERIFY_RATE") or "1", get(VARIABLE) or ""
    return _checked(directory, shared, size, rate, mode, on_miss, trust, cpu)


def cache_directory(environ: Mapping[str, str] | None = None) -> str:
    """Return the absolute path of the directory that `environ` (default: the process's) names, else of the user's.

    Raises SettingsError for a path that means nothing, NoDirectoryError where nothing names one.
    """
    given = (os.environ if environ is None else environ).get("CACHEGRAPH_DIR")
    return _absolute("CACHEGRAPH_DIR", given) if given else user_cache_directory()


def _absolute(variable: str, path: str) -> str:
    """The path as it is meant; of a user who has no home nobody knows what `~` means, and of no directory what `.` does."""
    if not path:
        return ""
    expanded = os.path.expanduser(path)
    if path.startswith("~") and not os.path.isabs(expanded):
        raise SettingsError(variable, path, ("an absolute path: its home directory is not known",))
    try:
        return os.path.abspath(expanded)
    except OSError:
        raise SettingsError(variable, path, ("an absolute path: the working directory is gone",)) from None


def user_cache_directory() -> str:
    """Return the user's cache directory for cachegraph, by the conventions of the platform.

    Raises NoDirectoryError where those name none.
    """
    found = _directory_of_user("cache", os.environ.get("HOME"), os.environ.get("XDG_CACHE_HOME"))
    if not found:
        raise NoDirectoryError(_user())
    return found


def user_config_directory() -> str:
    """Return the user's configuration directory for cachegraph; raises NoDirectoryError as user_cache_directory does."""
    found = _directory_of_user("config", os.environ.get("HOME"), os.environ.get("XDG_CONFIG_HOME"))
    if not found:
        raise NoDirectoryError(_user())
    return found


@lru_cache(maxsize=16)
def _directory_of_user(kind: Literal["cache", "config"], home: str | None, xdg_home: str | None) -> str:
    # The last two are what platformdirs looks at: a process that changes them gets the directory they now mean.
    import platformdirs

    find = platformdirs.user_cache_dir if kind == "cache" else platformdirs.user_config_dir
    try:
        found = find("cachegraph", appauthor=False)
    except Exception:  # of whatever kind its releases raise: there is no home to be found
        return ""
    return found if os.path.isabs(found) else ""


def _user() -> str:
    return f"the user {os.getuid()}" if hasattr(os, "getuid") else "this user"


@lru_cache(maxsize=64)
def _checked(
    directory: str, shared: str, max_size: str, rate: str, mode: str, on_miss: str, trust: str, cpu: str
) -> Settings:
    return Settings(
        Path(directory) if directory else None,
        cast("Mode", _one_of("mode", mode)),
        cast("OnMiss", _one_of("on_miss", on_miss)),
        Path(shared) if shared else None,
        _size("max_size", max_size),
        _trust("trust", trust),
        _share("verify_rate", rate),
        _level(cpu),
    )


def _one_of(name: str, value: str) -> str:
    setting = _setting(name)
    value = value or setting.allowed[0]
    if value not in setting.allowed:
        raise SettingsError(setting.variable, value, setting.allowed)
    return value


def _size(name: str, value: str) -> int:
    try:
        return parse_size(value)
    except ValueError:
        raise SettingsError(
            _setting(name).variable, value, ("a size such as 5GB", "0 for no limit")
        ) from None


def _trust(name: str, value: str) -> str:
    setting = _setting(name)
    if not _TRUST.fullmatch(value):
        raise SettingsError(setting.variable, value, setting.allowed)
    return value or setting.allowed[0]


def _share(name: str, value: str) -> float:
    setting = _setting(name)
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise SettingsError(setting.variable, value, ("a number above 0 and up to 1",))
    return share


def _level(value: str) -> str:
    levels = compiled_levels()
    if value and value not in levels:
        raise SettingsError(VARIABLE, value, levels)
    return value


def _setting(name: str) -> Setting:
    return next(setting for setting in SETTINGS if setting.name == name)
