"""Names that PyTensor has in a module of the same path, and the engine in another, found when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def names_elsewhere(path: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of the module `path`, which raises AttributeError for any other name."""

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):  # every import asks for __path__
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        from engine.paths import find

        return find(path, name)

    return __getattr__
