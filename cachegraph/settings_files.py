"""The two files of settings, in TOML, read when settings are asked for, and again when a file has changed.

    <configuration directory>/config.toml   the user's: any setting, by its name, such as  mode = "readonly"
    pyproject.toml                          a project's: those of the table [tool.cachegraph]

The project's file is the nearest with a table of that name, written like this, in the working directory or
above it. It comes with code of others, and a user who looks into a directory has not agreed to it: it may
set only what can cost time (`Setting.by_project`; decision 0153). A value has the type that is natural in
TOML: a number for `threads`, a text or a list of texts for `remotes`.

A file counts only if it belongs to this user or to root; the user's, which says whose code runs, only if
nobody else can write it. A mistake is a sentence in `problems`; the rest of the file counts.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from functools import lru_cache

from cachegraph.declared_settings import SETTINGS, Setting, shown
from cachegraph.errors import NoDirectoryError, choice_of
from cachegraph.named_tuples import NamedTuple
from cachegraph.object_code.cpu import known_levels
from cachegraph.user_directories import user_config_directory

USER_FILE = "config.toml"
PROJECT_FILE = "pyproject.toml"

_TABLE = b"[tool.cachegraph"
_LARGEST = 1 << 20
_MOST_SHOWN = 60
_ROOT = 0
_BY_NAME = {setting.name: setting for setting in SETTINGS}
_PATHS = ("directory", "shared_directory", "log")
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class SettingsFile(NamedTuple):
    """The settings of a file: the text of the variable by the name of the setting; and its mistakes."""

    path: str
    texts: Mapping[str, str]
    problems: tuple[str, ...] = ()


def user_file() -> SettingsFile | None:
    """Return the user's file, or None if there is none; never raises."""
    try:
        path = os.path.join(user_config_directory(), USER_FILE)
    except NoDirectoryError:
        return None
    return _current(path, False)


def project_file() -> SettingsFile | None:
    """Return the project's file, or None if there is none; never raises."""
    try:
        directory = os.getcwd()
    except OSError:  # it is gone
        return None
    while True:
        found = _current(os.path.join(directory, PROJECT_FILE), True)
        parent = os.path.dirname(directory)
        if found is not None or parent == directory:
            return found
        directory = parent


def _current(path: str, is_project: bool) -> SettingsFile | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    version = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return _read(path, version, is_project)


@lru_cache(maxsize=64)
def _read(path: str, version: tuple[int, ...], is_project: bool) -> SettingsFile | None:
    """Return what the file holds, None for a project's file without the table; `version` is in the key of the
    cache only."""
    try:
        content, status = _content(path)
    except OSError as error:
        return None if is_project else _unusable(path, f"cannot be read: {error.strerror}")
    if is_project and _TABLE not in content:
        return None
    if status.st_uid not in (os.geteuid(), _ROOT) or (not is_project and status.st_mode & 0o022):
        return _unusable(path, "belongs to another user, or others can write it")
    import tomllib  # 5 ms, which most users need not wait for

    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        return _unusable(path, f"is no TOML: {error}")
    if not is_project:
        return _checked(path, document, False)
    tool = document.get("tool")
    table = tool.get("cachegraph") if isinstance(tool, dict) else None
    return None if table is None else _checked(path, table, True)


def _content(path: str) -> tuple[bytes, os.stat_result]:
    """Return the bytes of the file, and its status. Raises OSError, also for a large or special file."""
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            raise OSError(errno.EINVAL, f"it is no file of at most {_LARGEST} bytes")
        return os.read(descriptor, _LARGEST), status
    finally:
        os.close(descriptor)


def _unusable(path: str, why: str) -> SettingsFile:
    return SettingsFile(path, {}, (f"the settings of {path} do not count: it {why}",))


def _checked(path: str, table: object, is_project: bool) -> SettingsFile:
    if not isinstance(table, dict):
        return _unusable(path, "has tool.cachegraph, which is no table")
    texts, problems = {}, []
    for name, value in table.items():
        try:
            texts[name] = _text(_BY_NAME.get(name), name, value, is_project)
        except ValueError as error:
            problems.append(f"in {path}, {error}")
    return SettingsFile(path, {name: text for name, text in texts.items() if text}, tuple(problems))


def _text(setting: Setting | None, name: str, value: object, is_project: bool) -> str:
    """Return the text of a value. Raises ValueError, with a sentence, for one that does not count."""
    if setting is None and name == "tool" and not is_project:
        raise ValueError("'tool' does nothing: settings are at the top of this file, without a table")
    if setting is None:
        import difflib  # needed for mistakes only

        nearest = difflib.get_close_matches(name, _BY_NAME, 1, 0.0)[0]
        raise ValueError(f"{_shortened(name)} does nothing: no such setting; the nearest is {nearest}")
    if is_project and not setting.by_project:
        raise ValueError(f"{name} does nothing: a project may not set it; you can, as {setting.variable}")
    try:
        text = _as_text(setting, value)
        setting.read(text or setting.default)
    except ValueError:
        allowed = choice_of(setting.allowed or known_levels())
        raise ValueError(f"{name} is {_shortened(value)}; set it to {allowed}") from None
    return text


def _as_text(setting: Setting, value: object) -> str:
    """Return a value of TOML as the text of the setting's variable. Raises ValueError for another type."""
    if type(value) not in setting.types:
        raise ValueError(value)
    if isinstance(value, list):
        if not all(isinstance(item, str) and item and not item.split()[1:] for item in value):
            raise ValueError(value)
        return " ".join(value)
    text = str(value)
    if setting.name in _PATHS and text not in ("", "explain"):
        text = os.path.expanduser(text)
        if not os.path.isabs(text):  # to what it is relative would depend on where the process is
            raise ValueError(value)
    return text


def _shortened(value: object) -> str:
    text = shown(repr(value))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
