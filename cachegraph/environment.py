"""The environment as a program meets it that only wants to compile: what is wrong with it is said once, and never raised.

What asks about the cache itself, the command line, reads it through settings.py, which raises.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from cachegraph.errors import NoDirectoryError, SettingsError
from cachegraph.settings import SETTINGS, OnMiss, Settings, current_settings
from cachegraph.store.entry import Miss

OTHER_VARIABLES = ("CACHEGRAPH_STRESS", "CACHEGRAPH_SUITE_ADAPTER", "CACHEGRAPH_SUITE_RECORD")
"""Those that are no settings of the cache: those of the tests."""

_PREFIX = "CACHEGRAPH_"
_noticed: set[str] = set()


def settings_in_force() -> tuple[Settings, Miss | None]:
    """Return the settings that the environment asks for now, and what is wrong with it so that there is no cache, or None.

    Never raises: by a value that is not allowed, or without a directory, there is none.
    """
    try:
        settings = current_settings()
    except SettingsError as error:
        return _without_cache(), Miss("bad-setting", str(error))
    except NoDirectoryError as error:
        return _without_cache(), Miss("no-directory", str(error))
    return settings, None


def warn_of_environment(absent: Miss | None) -> None:
    """Log what the environment has that does nothing, or not what it should, each once."""
    if absent is not None:
        warn_once(f"nothing is cached in this process: {absent.detail}")
    for text in unknown_variables():
        warn_once(text)


def warn_once(text: str) -> None:
    """Log `text` as a warning, unless this process has done so."""
    if text in _noticed:
        return
    _noticed.add(text)
    import logging  # 7 ms, which a warm start does not need

    logging.getLogger("cachegraph").warning("%s", text)


def unknown_variables() -> Iterator[str]:
    """Yield a sentence for each variable of the environment that is named like a setting and is none."""
    known = (*(setting.variable for setting in SETTINGS), *OTHER_VARIABLES)
    for name in os.environ:
        if name.startswith(_PREFIX) and name not in known:
            import difflib  # 5 ms, which nobody needs who made no mistake

            nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
            yield f"the environment variable {name} does nothing: there is no such setting; the nearest is {nearest}"


def _without_cache() -> Settings:
    """No directory, and nothing written. Who forbids compiling is still obeyed."""
    on_miss: OnMiss = "error" if os.environ.get("CACHEGRAPH_ON_MISS") == "error" else "compile"
    return Settings(None, "off", on_miss)
