"""Backends: what computes the functions that PyTensor makes.

The backend "numba" is PyTensor's own. Any other is an entry point of the group
"cachegraph.pytensor.backends": a function that adds a mode to PyTensor's registries, and returns the mode's
name. The class of that mode's linker has the backend's name in its attribute `backend`, and may have in
`companions` the names of modules whose functions `patch` and `unpatch` have other libraries follow the mode
while it is the default.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from cachegraph.errors import CachegraphError

NUMBA = "numba"
ENTRY_POINTS = "cachegraph.pytensor.backends"


class UnknownBackend(CachegraphError):
    """No installed distribution has the backend `wanted`; `known` are those there are."""

    def __init__(self, wanted: str, known: tuple[str, ...]) -> None:
        super().__init__(wanted, known)
        self.wanted = wanted
        self.known = known

    def __str__(self) -> str:
        return (
            f"installing into PyTensor: there is no backend {self.wanted!r}; found {', '.join(self.known)}; "
            "choose one of them, or install the distribution that has it"
        )


def add_mode(backend: str) -> str:
    """Have the backend of that name add its mode to PyTensor's; return the mode's name.

    Raises UnknownBackend, and what importing and running the entry point raises.
    """
    from importlib.metadata import EntryPoint, entry_points

    declared = _declared(backend)
    if declared is not None:
        point = EntryPoint(backend, declared, ENTRY_POINTS)
    else:
        points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
        if backend not in points:
            raise UnknownBackend(backend, (NUMBA, *sorted(points)))
        point = points[backend]
    name: str = point.load()()
    return name


def _declared(backend: str) -> str | None:
    """Return the entry point of that name in the first directory of sys.path that has one.

    importlib.metadata reads what all distributions declare, which takes ten times as long. It finds the
    others: those in archives, and those of finders.
    """
    for directory in sys.path:
        for path in _declarations(directory or os.curdir):
            section = None
            for line in _lines(path):
                if line.startswith("["):
                    section = line.strip("[]")
                elif section == ENTRY_POINTS and line.partition("=")[0].strip() == backend:
                    return line.partition("=")[2].strip()
    return None


def _declarations(directory: str) -> list[str]:
    from cachegraph.fingerprint.releases import metadata_in  # with all encoders; `add_mode` alone needs it

    names = sorted(name for rows in metadata_in(directory).values() for name, _ in rows)
    return [os.path.join(directory, name, "entry_points.txt") for name in names]


def _lines(path: str) -> list[str]:
    """Return the lines of a file, none if it declares no backend, or cannot be read."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return []
    if ENTRY_POINTS.encode() not in content:
        return []
    return [line.strip() for line in content.decode("utf-8", "replace").splitlines()]


def backend_of(linker: Any) -> str | None:
    """Return the name of the backend that a linker belongs to; None for PyTensor's own, or one of others."""
    name: str | None = getattr(type(linker), "backend", None)
    return name


class DefaultMode:
    """The mode of PyTensor's for functions that are given none, replaced for a while."""

    def __init__(self) -> None:
        self._before: str | None = None
        self._companions: list[ModuleType] = []

    def become(self, name: str) -> None:
        """Make the mode of that name the default."""
        before = _config().mode if self._before is None else self._before
        self.restore()
        self._before = before
        _config().mode = name
        self._companions = _companions(name)
        for companion in self._companions:
            companion.patch()

    def restore(self) -> None:
        """Make the mode before `become` the default again; do nothing if there was no `become`."""
        if self._before is not None:
            _config().mode = self._before
            self._before = None
        while self._companions:
            self._companions.pop().unpatch()


def _companions(name: str) -> list[ModuleType]:
    from pytensor.compile.mode import get_mode

    names = getattr(type(get_mode(name).linker), "companions", ())
    return [import_module(companion) for companion in names]


def _config() -> Any:
    from pytensor.configdefaults import config

    return config
