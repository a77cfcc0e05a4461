"""Settings for programs that only want to compile: mistakes in the environment are logged once, never raised.

The command line, which is about the cache itself, reads settings through settings.py, which raises.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from cachegraph.declared_settings import VARIABLES
from cachegraph.errors import NoDirectoryError, SettingsError
from cachegraph.logger import logger
from cachegraph.settings import OnMiss, Settings, current_settings, given, mistakes
from cachegraph.store.entry import Miss

OTHER_VARIABLES = (
    "CACHEGRAPH_PYTENSOR",
    "CACHEGRAPH_STRESS",
    *(
        "CACHEGRAPH_SUITE_ADAPTER",
        "CACHEGRAPH_SUITE_MODE",
        "CACHEGRAPH_SUITE_ONLY",
        "CACHEGRAPH_SUITE_RECORD",
    ),
)
"""Variables that are no settings of the cache: that of pytensor/activation.py, and those of the tests."""

_PREFIX = "CACHEGRAPH_"
_noticed: set[str] = set()


def settings_in_force(
    directory: str | bytes | os.PathLike[str] | None = None,
) -> tuple[Settings, Miss | None]:
    """Return the settings that the environment asks for now, and None, or the reason that there is no cache.

    A `directory` takes the place of the environment's. Never raises: a value that is not allowed, or no
    directory, means no cache.
    """
    named = {} if directory is None else {VARIABLES["directory"]: os.fsdecode(directory)}
    try:
        settings = current_settings({**os.environ, **named} if named else None)
    except SettingsError as error:
        return _without_cache(), Miss("bad-setting", str(error))
    except NoDirectoryError as error:
        return _without_cache(), Miss("no-directory", str(error))
    return settings, None


def warn_of_environment(absent: Miss | None) -> None:
    """Log, each once, the reason that there is no cache, and what does nothing in variables and files."""
    if absent is not None:
        warn_once(f"nothing is cached in this process: {absent.detail}")
    for text in (*unknown_variables(), *mistakes()):
        warn_once(text)


def warn_once(text: str) -> None:
    """Log `text` as a warning, once per process."""
    if text in _noticed:
        return
    _noticed.add(text)
    logger("cachegraph").warning("%s", text)


def unknown_variables() -> Iterator[str]:
    """Yield a sentence for each variable of the environment that is named like a setting but is none."""
    known = (*VARIABLES.values(), *OTHER_VARIABLES)
    for name in os.environ:
        if name.startswith(_PREFIX) and name not in known:
            import difflib  # 5 ms, needed for mistakes only

            nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
            yield f"the environment variable {name} does nothing: no such setting; the nearest is {nearest}"


def _without_cache() -> Settings:
    """Return settings without a directory; a ban on compiling still holds."""
    on_miss: OnMiss = "error" if given()["on_miss"].text == "error" else "compile"
    return Settings(None, "off", on_miss)
