"""Objects of other libraries' modules, replaced for a while: now, or when a module is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from inspect import signature
from types import ModuleType
from typing import Any

from cachegraph.import_watcher import ImportWatcher

Replacements = Callable[[ModuleType], Mapping[str, Any]]
"""Replacements for objects of a module, by their names there; none if the module is not as it is known."""


class ModulePatches:
    """The replacements in the modules of the given names, in force from `apply` to `restore`."""

    def __init__(self, replacements: Mapping[str, Replacements]) -> None:
        self._replacements = replacements
        self._patched: list[ModuleType] = []
        self._before: list[tuple[ModuleType, str, Any]] = []
        self._watcher = ImportWatcher(dict.fromkeys(replacements, self._patch))

    def apply(self) -> None:
        """Replace the objects of imported modules, and of others once they are imported.

        A second call changes nothing.
        """
        for name in self._replacements:
            if (module := sys.modules.get(name)) is not None:
                self._patch(module)
        self._watcher.start()

    def restore(self) -> None:
        """Put the objects back that were replaced."""
        self._watcher.stop()
        self._patched.clear()
        while self._before:
            module, name, own = self._before.pop()
            setattr(module, name, own)

    def _patch(self, module: ModuleType) -> None:
        if any(patched is module for patched in self._patched):
            return
        self._patched.append(module)
        for name, replacement in self._replacements[module.__name__](module).items():
            self._before.append((module, name, getattr(module, name)))
            setattr(module, name, replacement)


def unknown_object(module: ModuleType, known: Mapping[str, Collection[str]]) -> str | None:
    """Return the first name of `known` that `module` lacks, or whose parameters are not the known ones."""
    for name, parameters in known.items():
        found = getattr(module, name, None)
        if found is None or set(signature(found).parameters) != set(parameters):
            return name
    return None
