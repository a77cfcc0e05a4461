"""The user's directories for caches and for configuration, by the conventions of the platform."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import Literal

from cachegraph.errors import NoDirectoryError

_ON_LINUX = {"cache": ".cache", "config": ".config"}


def user_cache_directory() -> str:
    """Return the user's cache directory; raises NoDirectoryError."""
    found = _directory_of_user("cache", os.environ.get("HOME"), os.environ.get("XDG_CACHE_HOME"))
    if not found:
        raise NoDirectoryError(_user())
    return found


def user_config_directory() -> str:
    """Return the user's configuration directory; raises NoDirectoryError."""
    found = _directory_of_user("config", os.environ.get("HOME"), os.environ.get("XDG_CONFIG_HOME"))
    if not found:
        raise NoDirectoryError(_user(), "configuration", "HOME or XDG_CONFIG_HOME")
    return found


@lru_cache(maxsize=16)
def _directory_of_user(kind: Literal["cache", "config"], home: str | None, xdg_home: str | None) -> str:
    # The cached result must change with these two variables.
    if sys.platform == "linux":  # platformdirs does the same there, and takes 5 ms to import
        found = os.path.join(
            (xdg_home or "").strip() or os.path.expanduser(f"~/{_ON_LINUX[kind]}"), "cachegraph"
        )
    else:
        found = _by_platform(kind)
    return found if os.path.isabs(found) else ""


def _by_platform(kind: Literal["cache", "config"]) -> str:
    import platformdirs

    find = platformdirs.user_cache_dir if kind == "cache" else platformdirs.user_config_dir
    try:
        return find("cachegraph", appauthor=False)
    except Exception:  # releases of platformdirs differ in what they raise if there is no home
        return ""


def _user() -> str:
    return f"the user {os.getuid()}"
