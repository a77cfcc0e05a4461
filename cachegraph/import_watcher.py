"""A watch for imports: something is done to a module when the program has imported it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class ImportWatcher:
    """A finder that finds what those after it find, and calls `callbacks[name]` with an imported module.

    An import that fails is watched again. The module keeps its own loader. Of several watches for one module,
    the one that was started first is called first.
    """

    def __init__(self, callbacks: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._callbacks = callbacks

    def start(self) -> None:
        """Watch the imports that follow; a second call changes nothing."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Watch no longer; do nothing if there is no watch."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification by which Python imports a watched module; None for any other module."""
        if fullname not in self._callbacks:
            return None
        for find in self._following():
            found = find(fullname, path, target)
            if found is not None:
                self._follow(found.loader, self._callbacks[fullname])
                return found
        return None

    def _following(self) -> list[Callable[..., ModuleSpec | None]]:
        """Return how the finders after this one find modules; like Python, ignore those that cannot.

        Those before it were asked already, and two watches that asked each other would not end.
        """
        finders = list(sys.meta_path)
        after = finders[finders.index(self) + 1 :] if self in finders else finders
        found = [getattr(finder, "find_spec", None) for finder in after]
        return [find for find in found if find is not None]

    def _follow(self, loader: Any, callback: Callable[[ModuleType], None]) -> None:
        """Have `loader` call `callback` after it has run the module; a package without code has no loader."""
        if not hasattr(loader, "exec_module"):
            return
        before = vars(loader).get("exec_module")

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            if before is not None:
                loader.exec_module = before
            loader.exec_module(module)
            callback(module)

        loader.exec_module = exec_module
