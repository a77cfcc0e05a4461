"""Every error cachegraph raises. Each says what was being done, to what, what was found and what to do, and keeps those as fields."""

from __future__ import annotations

import os

_SHOWN_SEGMENTS = 12


class CachegraphError(Exception):
    """Base of all errors raised by cachegraph."""


class Unfingerprintable(CachegraphError):
    """A value has no canonical encoding, so nothing that depends on it can have a key.

    `path` leads from the root to the offending object, `found` names its type, `advice` says what to do instead.
    An encoder that holds the object puts its own segment in front with `inside` and re-raises.
    """

    def __init__(self, found: str, advice: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(found, advice, path)
        self.found = found
        self.advice = advice
        self.path = path

    def inside(self, segment: str) -> None:
        """Put `segment`, the place the value was reached through, in front of the path."""
        self.path = (segment, *self.path)

    def __str__(self) -> str:
        return f"cannot fingerprint {_joined(self.path)}: found {self.found}; {self.advice}"


class InvalidEncoding(CachegraphError):
    """Bytes that should be a canonical encoding are not one: cut short, damaged, or of another version."""

    def __init__(self, doing: str, offset: int, expected: str, found: str) -> None:
        super().__init__(doing, offset, expected, found)
        self.doing = doing
        self.offset = offset
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return (
            f"{self.doing}: expected {self.expected} at byte {self.offset}, found {self.found}; "
            "treat the entry it came from as damaged or foreign"
        )


class ObjectFormatError(CachegraphError):
    """Bytes that should be relocatable object code are not, or are damaged. `found` says what they are instead."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"reading the symbols of an object: {self.found}; treat the entry it came from as damaged"


class CythonFunctionError(CachegraphError):
    """An extension does not export a C function: its `module`, the `name` of the function, what was `found`."""

    def __init__(self, module: str, name: str, found: str) -> None:
        super().__init__(module, name, found)
        self.module = module
        self.name = name
        self.found = found

    def __str__(self) -> str:
        return f"resolving {self.module}.{self.name}: {self.found}; install SciPy again"


class MissingBlob(CachegraphError):
    """An entry is not whole: the blob of that `digest` (hex), which `holder` refers to, is missing or damaged."""

    def __init__(self, holder: str, digest: str) -> None:
        super().__init__(holder, digest)
        self.holder = holder
        self.digest = digest

    def __str__(self) -> str:
        return (
            f"loading {self.holder}: its blob {self.digest} is missing, or is not what its name says; "
            "build the entry anew"
        )


class CacheMissError(CachegraphError):
    """CACHEGRAPH_ON_MISS=error and the cache has no entry: `level`, `key` (hex) and the `reason` of the miss."""

    def __init__(self, level: str, key: str, reason: str) -> None:
        super().__init__(level, key, reason)
        self.level = level
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"looked up {self.level} entry {self.key}: miss ({self.reason}) while CACHEGRAPH_ON_MISS=error forbids "
            "compiling; fill the cache in a run with CACHEGRAPH_ON_MISS=compile first"
        )


class StoreError(CachegraphError):
    """The store could not do what an administrative command asked: `doing` what, to which `path`, what was `found`."""

    def __init__(self, doing: str, path: str | os.PathLike[str], found: str) -> None:
        super().__init__(doing, path, found)
        self.doing = doing
        self.path = path
        self.found = found

    def __str__(self) -> str:
        return f"{self.doing} {os.fspath(self.path)}: found {self.found}"


class SourceError(CachegraphError):
    """The source of a package could not be read, so what it describes has no key: `doing` what, `path`, `found`."""

    def __init__(self, doing: str, path: str | os.PathLike[str], found: str) -> None:
        super().__init__(doing, path, found)
        self.doing = doing
        self.path = path
        self.found = found

    def __str__(self) -> str:
        return f"{self.doing} {os.fspath(self.path)}: found {self.found}; install the package as unpacked source files"


class SettingsError(CachegraphError):
    """A setting has a value that is not allowed: `name` of the variable, the value `found`, what is `allowed`."""

    def __init__(self, name: str, found: str, allowed: tuple[str, ...]) -> None:
        super().__init__(name, found, allowed)
        self.name = name
        self.found = found
        self.allowed = allowed

    def __str__(self) -> str:
        return f"reading {self.name}: found {self.found!r}; set it to one of {', '.join(self.allowed)}, or unset it"


class NoDirectoryError(CachegraphError):
    """There is no place for a cache: nothing names a home directory of `user`."""

    def __init__(self, user: str) -> None:
        super().__init__(user)
        self.user = user

    def __str__(self) -> str:
        return (
            f"looking for a place for the cache: {self.user} has no home directory (HOME is not set, or no absolute "
            "path, and no list of users has it); set CACHEGRAPH_DIR, HOME or XDG_CACHE_HOME"
        )


def _joined(path: tuple[str, ...]) -> str:
    if not path:
        return "the value"
    if len(path) > _SHOWN_SEGMENTS:
        half = _SHOWN_SEGMENTS // 2
        path = (*path[:half], f"... {len(path) - 2 * half} more ...", *path[-half:])
    return " -> ".join(path)
