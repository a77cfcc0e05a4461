"""The declarations of the settings: each one's name, variable, default, values, and who may set it.

None of them is part of a cache key: they say where entries are kept, whose are believed, how they are used,
and which of the stored code runs, but not what an entry is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachegraph.named_tuples import NamedTuple
from cachegraph.object_code.cpu import VARIABLE, known_levels
from cachegraph.units import parse_size

if TYPE_CHECKING:
    from cachegraph.remote_url import RemoteURL

DEFAULT_MAX_SIZE = "5GB"

_KEY = r"ed25519:[\w-]{43}"
_PRIVATE = "private"
_OTHER_TRUST = rf"published(:[0-9]+)?|signed|(group|signed):{_KEY}(,{_KEY})*"
"""Compiled when it is asked for: the usual start does without (decision 0106)."""


class Setting(NamedTuple):
    """The declaration of one setting: its variable, its default text, and how to read a text.

    `read` raises ValueError for a text that is not allowed; `allowed` is what the message then offers (for
    the CPU, the levels of the machine). In a file, the value has one of the `types`. A `by_project` setting
    may be set by a project's file: it can cost time, but not make this user believe or lose anything.
    """

    name: str
    variable: str
    default: str
    read: Callable[[str], Any]
    allowed: tuple[str, ...] = ()
    types: tuple[type, ...] = (str,)
    by_project: bool = False


def shown(text: str) -> str:
    """Return `text` without the user and the password of a URL."""
    return re.sub(r"//[^/\s]*@", "//***@", text)


def _path(text: str) -> Path | None:
    if "\0" in text:  # a file can hold one, or a call: what opens the path would raise
        raise ValueError(text)
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
    if text and text != "explain" and (not os.path.isabs(text) or "\0" in text):
        raise ValueError(text)
    return text


_TRUSTS = (
    *(_PRIVATE, "published", "published:UID", "signed"),
    "group:KEY,KEY,... or signed:KEY,KEY,..., each as `cachegraph key show` prints it",
)
SETTINGS = (
    Setting("directory", "CACHEGRAPH_DIR", "", _path, ("an absolute path",)),
    Setting("mode", "CACHEGRAPH_MODE", *_one_of("readwrite", "readonly", "off", "verify"), by_project=True),
    Setting("on_miss", "CACHEGRAPH_ON_MISS", *_one_of("compile", "error"), by_project=True),
    Setting("shared_directory", "CACHEGRAPH_SHARED_DIR", "", _path, ("an absolute path",)),
    Setting(
        "max_size",
        "CACHEGRAPH_MAX_SIZE",
        DEFAULT_MAX_SIZE,
        parse_size,
        ("a size such as 5GB", "0 for no limit"),
        (str, int),
    ),
    Setting("trust", "CACHEGRAPH_TRUST", _PRIVATE, _trust, _TRUSTS),
    Setting(
        "verify_rate",
        "CACHEGRAPH_VERIFY_RATE",
        "1",
        _share,
        ("a number above 0 and up to 1",),
        (int, float),
        by_project=True,
    ),
    Setting("cpu", VARIABLE, "", _level, by_project=True),
    Setting(
        "threads", "CACHEGRAPH_NUM_THREADS", "", _threads, ("a number from 1 on",), (int,), by_project=True
    ),
    Setting("remotes", "CACHEGRAPH_REMOTE", "", _remotes, ("URLs with spaces between them",), (str, list)),
    Setting("log", "CACHEGRAPH_LOG", "", _log, ("explain", "a path with a slash")),
)
VARIABLES = {setting.name: setting.variable for setting in SETTINGS}
