"""The settings that users can change, read from the environment each time they are asked for, never at
import.

`SETTINGS` declares each setting once. None of them is part of a cache key: they say where entries are kept,
whose are believed, how they are used, and which of the stored code runs, but not what an entry is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cachegraph.errors import NoDirectoryError, SettingsError
from cachegraph.named_tuples import NamedTuple
from cachegraph.object_code.cpu import VARIABLE, known_levels
from cachegraph.units import parse_size

if TYPE_CHECKING:
    from cachegraph.remote_url import RemoteURL

DEFAULT_MAX_SIZE = "5GB"

_KEY = r"ed25519:[\w-]{43}"
_PRIVATE = "private"
_OTHER_TRUST = rf"published(:[0-9]+)?|(group|signed):{_KEY}(,{_KEY})*"
"""Compiled when it is asked for: the usual start does without (decision 0106)."""
Mode = Literal["readwrite", "readonly", "off", "verify"]
OnMiss = Literal["compile", "error"]


class Setting(NamedTuple):
    """The declaration of one setting: its variable, its default text, and how to read a text.

    `read` raises ValueError for a text that is not allowed; `allowed` is what the message then offers (for
    the CPU, the levels of the machine).
    """

    name: str
    variable: str
    default: str
    read: Callable[[str], Any]
    allowed: tuple[str, ...] = ()


class Settings(NamedTuple):
    """The settings in force.

    `directory` is absolute; None in the mode off, where none is looked for, and where there is no cache.
    `max_size` is the most bytes that the cache on this node holds; 0 sets no limit. `trust` says whose
    entries are believed where others can write (store/trust.py). `verify_rate` is the share of hits that the
    mode verify compares with a new build. `cpu` is the best CPU level whose code runs (object_code/cpu.py);
    empty for the best of the machine. `threads` is the most threads that one call uses; 0 leaves that to
    OMP_NUM_THREADS and the machine (engine/runtime/target.py). `remotes` are the URLs of servers
    behind the directories, nearest first (remote_url.py). `log` asks for a line a decision: "explain" on
    stderr, an absolute path in that file (caching/decision_log.py); empty for none.
    """

    directory: Path | None
    mode: Mode
    on_miss: OnMiss
    shared_directory: Path | None = None
    max_size: int = parse_size(DEFAULT_MAX_SIZE)
    trust: str = "private"
    verify_rate: float = 1.0
    cpu: str = ""
    threads: int = 0
    remotes: tuple[RemoteURL, ...] = ()
    log: str = ""


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _one_of(*allowed: str) -> tuple[str, Callable[[str], str], tuple[str, ...]]:
    """Return the default, the reader and the allowed values of a setting that is one of several words."""
    return allowed[0], lambda text: allowed[allowed.index(text)], allowed


def _trust(text: str) -> str:
    if text != _PRIVATE and not re.fullmatch(_OTHER_TRUST, text, re.ASCII):
        raise ValueError(text)
    return text


def _share(text: str) -> float:
    share = float(text)
    if not 0.0 < share <= 1.0:
        raise ValueError(text)
    return share


def _level(text: str) -> str:
    if text and text not in known_levels():
        raise ValueError(text)
    return text


def _threads(text: str) -> int:
    if text and int(text) < 1:
        raise ValueError(text)
    return int(text or 0)


def _remotes(text: str) -> tuple[RemoteURL, ...]:
    if not text:
        return ()
    from cachegraph.remote_url import RemoteURL  # most caches have no remote

    return tuple(map(RemoteURL.of, text.split()))


def _log(text: str) -> str:
    if text and text != "explain" and not os.path.isabs(text):
        raise ValueError(text)
    return text


_TRUSTS = (
    *(_PRIVATE, "published", "published:UID"),
    "group:KEY,KEY,... or signed:KEY,KEY,..., each as `cachegraph key` prints it",
)
SETTINGS = (
    Setting("directory", "CACHEGRAPH_DIR", "", _path),
    Setting("mode", "CACHEGRAPH_MODE", *_one_of("readwrite", "readonly", "off", "verify")),
    Setting("on_miss", "CACHEGRAPH_ON_MISS", *_one_of("compile", "error")),
    Setting("shared_directory", "CACHEGRAPH_SHARED_DIR", "", _path),
    Setting(
        "max_size",
        "CACHEGRAPH_MAX_SIZE",
        DEFAULT_MAX_SIZE,
        parse_size,
        ("a size such as 5GB", "0 for no limit"),
    ),
    Setting("trust", "CACHEGRAPH_TRUST", _PRIVATE, _trust, _TRUSTS),
    Setting("verify_rate", "CACHEGRAPH_VERIFY_RATE", "1", _share, ("a number above 0 and up to 1",)),
    Setting("cpu", VARIABLE, "", _level),
    Setting("threads", "CACHEGRAPH_NUM_THREADS", "", _threads, ("a number from 1 on",)),
    Setting("remotes", "CACHEGRAPH_REMOTE", "", _remotes, ("URLs with spaces between them",)),
    Setting("log", "CACHEGRAPH_LOG", "", _log, ("explain", "a path with a slash")),
)
VARIABLES = {setting.name: setting.variable for setting in SETTINGS}


def current_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that `environ` (default: the process's environment) asks for now.

    A variable that is unset or empty gives the default. Raises SettingsError for a value that is not allowed,
    and NoDirectoryError if no directory is named and the user has no home.
    """
    get = (os.environ if environ is None else environ).get
    texts = {setting.name: get(setting.variable) or "" for setting in SETTINGS}
    texts["directory"] = "" if texts["mode"] == "off" else cache_directory(environ)
    texts["shared_directory"] = _absolute(VARIABLES["shared_directory"], texts["shared_directory"])
    if os.sep in texts["log"]:
        texts["log"] = _absolute(VARIABLES["log"], texts["log"])
    return _settings_of(tuple(texts.values()))


@lru_cache(maxsize=64)
def _settings_of(texts: tuple[str, ...]) -> Settings:
    return Settings(*map(_read, SETTINGS, texts))


def _read(setting: Setting, text: str) -> Any:
    try:
        return setting.read(text or setting.default)
    except ValueError:
        raise SettingsError(setting.variable, _shown(text), setting.allowed or known_levels()) from None


def _shown(text: str) -> str:
    """Return `text` without the user and the password of a URL."""
    return re.sub(r"//[^/\s]*@", "//***@", text)


def cache_directory(environ: Mapping[str, str] | None = None) -> str:
    """Return the absolute path of the directory that `environ` (default: the process's) names, or of the
    user's.

    Raises SettingsError for a path that cannot be made absolute, NoDirectoryError if the user has no home.
    """
    variable = VARIABLES["directory"]
    given = (os.environ if environ is None else environ).get(variable)
    return _absolute(variable, given) if given else user_cache_directory()


def _absolute(variable: str, path: str) -> str:
    """Return `path` with `~` expanded, relative to the working directory; SettingsError if either is
    unknown."""
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
    """Return the user's cache directory, by the conventions of the platform; raises NoDirectoryError."""
    found = _directory_of_user("cache", os.environ.get("HOME"), os.environ.get("XDG_CACHE_HOME"))
    if not found:
        raise NoDirectoryError(_user())
    return found


def user_config_directory() -> str:
    """Return the user's configuration directory, by the conventions of the platform; raises
    NoDirectoryError."""
    found = _directory_of_user("config", os.environ.get("HOME"), os.environ.get("XDG_CONFIG_HOME"))
    if not found:
        raise NoDirectoryError(_user())
    return found


@lru_cache(maxsize=16)
def _directory_of_user(kind: Literal["cache", "config"], home: str | None, xdg_home: str | None) -> str:
    # platformdirs reads these two variables: the cached result must change with them.
    import platformdirs

    find = platformdirs.user_cache_dir if kind == "cache" else platformdirs.user_config_dir
    try:
        found = find("cachegraph", appauthor=False)
    except Exception:  # releases of platformdirs differ in what they raise if there is no home
        return ""
    return found if os.path.isabs(found) else ""


def _user() -> str:
    return f"the user {os.getuid()}"
