"""`CACHEGRAPH_PYTENSOR`: the adapter, installed because a variable of the environment names a backend.

    CACHEGRAPH_PYTENSOR=engine python program.py

does what `cachegraph.pytensor.install(backend="engine")` before the first function does. When Python
starts, the file cachegraph_pytensor.pth beside the installed packages calls `activate` if the variable is
set. PyTensor is not imported for it: the adapter is installed when the program has imported PyTensor. Worker
processes inherit the variable, and do the same. Whatever goes wrong is said once, and PyTensor then works as
if the variable were not set.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

from cachegraph.import_watcher import ImportWatcher

VARIABLE = "CACHEGRAPH_PYTENSOR"
_WATCHED = "pytensor"


def activate() -> None:
    """Have the adapter installed as soon as PyTensor is imported, or now if it is."""
    if _WATCHED in sys.modules:
        _install()
    else:
        _WATCHER.start()


def _install() -> None:
    """Install the adapter with the backend that the variable names; log what is wrong with it."""
    backend = os.environ.get(VARIABLE, "").strip()
    if not backend:
        return
    try:
        from cachegraph.pytensor.making.installing import install

        install(backend=backend)
    except Exception as error:  # an environment must not break a program
        from cachegraph.environment import warn_once

        warn_once(f"{VARIABLE}={backend} does nothing: {_sentence(error)}")


def _sentence(error: Exception) -> str:
    from cachegraph.errors import CachegraphError

    return str(error) if isinstance(error, CachegraphError) else f"{type(error).__name__}: {error}"


def _install_after(pytensor: ModuleType) -> None:
    _WATCHER.stop()
    _install()


_WATCHER = ImportWatcher({_WATCHED: _install_after})
