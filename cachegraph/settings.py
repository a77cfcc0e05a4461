"""The settings in force: of the environment, of the project's file, of the user's, and the defaults, in this
order. They are read each time they are asked for, never at import.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cachegraph.declared_settings import DEFAULT_MAX_SIZE, SETTINGS, VARIABLES, Setting, shown
from cachegraph.errors import SettingsError
from cachegraph.named_tuples import NamedTuple
from cachegraph.object_code.cpu import known_levels
from cachegraph.settings_files import project_file, user_file
from cachegraph.units import parse_size
from cachegraph.user_directories import user_cache_directory

if TYPE_CHECKING:
    from cachegraph.remote_url import RemoteURL

Mode = Literal["readwrite", "readonly", "off", "verify"]
OnMiss = Literal["compile", "error"]
DEFAULT, ENVIRONMENT = "default", "environment"


class Given(NamedTuple):
    """The text of a setting, and its source: DEFAULT, ENVIRONMENT, or the path of a file."""

    text: str
    source: str


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


def current_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that `environ` (default: the process's environment) and the files ask for now.

    A variable that is unset or empty gives what a file says, or the default. What is wrong in a file, and a
    log that is no place for one, count as unset (see `mistakes`). Raises SettingsError for any other variable
    with a value that is not allowed, and NoDirectoryError if no directory is named and the user has no home.
    """
    texts = {name: found.text for name, found in given(environ).items()}
    texts["directory"] = "" if texts["mode"] == "off" else texts["directory"] or user_cache_directory()
    for name in ("directory", "shared_directory"):
        texts[name] = _absolute(VARIABLES[name], texts[name])
    texts["log"] = _log_place(texts["log"])
    return _settings_of(tuple(texts.values()))


def given(environ: Mapping[str, str] | None = None) -> dict[str, Given]:
    """Return the text of each setting and where it came from; never raises."""
    get = (os.environ if environ is None else environ).get
    files = [file for file in (project_file(), user_file()) if file is not None]
    found = dict.fromkeys(VARIABLES, Given("", DEFAULT))
    for file in reversed(files):
        found.update((name, Given(text, file.path)) for name, text in file.texts.items())
    texts = ((name, get(variable)) for name, variable in VARIABLES.items())
    found.update((name, Given(text, ENVIRONMENT)) for name, text in texts if text)
    return found


def mistakes(environ: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield a sentence for each mistake in a file, and for a log that is no place for one."""
    for file in (project_file(), user_file()):
        yield from () if file is None else file.problems
    variable = VARIABLES["log"]
    text = (os.environ if environ is None else environ).get(variable) or ""
    if text and not _log_place(text):
        allowed = next(setting.allowed for setting in SETTINGS if setting.variable == variable)
        yield f"{SettingsError(variable, text, allowed)}; nothing is logged there"


def _log_place(text: str) -> str:
    """Return the setting `log`, a path made absolute; empty for a text that is neither word nor path."""
    if os.sep not in text:
        return text if text in ("", "explain") else ""
    try:
        return _absolute(VARIABLES["log"], text)
    except SettingsError:
        return ""


@lru_cache(maxsize=64)
def _settings_of(texts: tuple[str, ...]) -> Settings:
    return Settings(*map(_read, SETTINGS, texts))


def _read(setting: Setting, text: str) -> Any:
    try:
        return setting.read(text or setting.default)
    except ValueError:
        raise SettingsError(setting.variable, shown(text), setting.allowed or known_levels()) from None


def cache_directory(environ: Mapping[str, str] | None = None) -> str:
    """Return the absolute path of the directory that `environ` (default: the process's) or a file names, or
    of the user's.

    Raises SettingsError for a path that cannot be made absolute, NoDirectoryError if the user has no home.
    """
    return _absolute(VARIABLES["directory"], given(environ)["directory"].text or user_cache_directory())


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
