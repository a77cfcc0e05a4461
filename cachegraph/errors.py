"""The errors of cachegraph. Each says what was being done, to what, what was found and what to do,
also as fields."""

from __future__ import annotations

import os

_SHOWN_SEGMENTS = 12


class CachegraphError(Exception):
    """The base of all errors raised by cachegraph."""


class Unfingerprintable(CachegraphError):
    """A value without a canonical encoding: nothing that depends on it can have a key.

    `path` leads from the root to the offending object, `found` names its type, and `advice` says what to do
    instead. Each encoder on the way puts its own segment in front with `inside` and raises the error again.
    """

    def __init__(self, found: str, advice: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(found, advice, path)
        self.found = found
        self.advice = advice
        self.path = path

    def inside(self, segment: str) -> None:
        """Put `segment`, through which the value was reached, in front of the path."""
        self.path = (segment, *self.path)

    def __str__(self) -> str:
        return f"cannot fingerprint {_joined(self.path)}: found {self.found}; {self.advice}"


class InvalidEncoding(CachegraphError):
    """Bytes that are not the canonical encoding they should be: truncated, damaged, or of another version."""

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
    """Bytes that are not the object code they should be; `found` says what they are instead."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"reading the symbols of an object: {self.found}; treat the entry it came from as damaged"


class ObjectLinkError(CachegraphError):
    """Object code that was not linked: what was done (`doing`), to what (`subject`), and what was `found`."""

    def __init__(self, doing: str, subject: str, found: str) -> None:
        super().__init__(doing, subject, found)
        self.doing = doing
        self.subject = subject
        self.found = found

    def __str__(self) -> str:
        return f"{self.doing} {self.subject}: {self.found}"


class CythonFunctionError(CachegraphError):
    """A C function that an extension does not export: its `module`, its `name`, and what was `found`."""

    def __init__(self, module: str, name: str, found: str) -> None:
        super().__init__(module, name, found)
        self.module = module
        self.name = name
        self.found = found

    def __str__(self) -> str:
        return f"resolving {self.module}.{self.name}: {self.found}; install SciPy again"


class MissingBlob(CachegraphError):
    """An incomplete entry: the blob `digest` (hex) that `holder` refers to is missing or damaged."""

    def __init__(self, holder: str, digest: str) -> None:
        super().__init__(holder, digest)
        self.holder = holder
        self.digest = digest

    def __str__(self) -> str:
        return (
            f"loading {self.holder}: its blob {self.digest} is missing, or is not what its name says; "
            "build the entry again"
        )


class CacheMissError(CachegraphError):
    """A miss while CACHEGRAPH_ON_MISS=error: the `level`, the `key` (hex) and the `reason` of the miss."""

    def __init__(self, level: str, key: str, reason: str) -> None:
        super().__init__(level, key, reason)
        self.level = level
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"looked up {self.level} entry {self.key}: miss ({self.reason}) while CACHEGRAPH_ON_MISS=error "
            "forbids compiling; fill the cache in a run with CACHEGRAPH_ON_MISS=compile first"
        )


class StoreError(CachegraphError):
    """A failure of the store in an administrative command: what it was `doing`, to which `path`, what it
    `found`."""

    def __init__(self, doing: str, path: str | os.PathLike[str], found: str) -> None:
        super().__init__(doing, path, found)
        self.doing = doing
        self.path = path
        self.found = found

    def __str__(self) -> str:
        return f"{self.doing} {os.fspath(self.path)}: found {self.found}"


class SourceError(CachegraphError):
    """Source that cannot be read or has changed, so that it cannot be part of a key: `doing`, `path` and
    `found`."""

    def __init__(self, doing: str, path: str | os.PathLike[str], found: str) -> None:
        super().__init__(doing, path, found)
        self.doing = doing
        self.path = path
        self.found = found

    def __str__(self) -> str:
        place = os.fspath(self.path)
        return f"{self.doing} {place}: found {self.found}; install the package as unpacked source files"


class SettingsError(CachegraphError):
    """A setting with a value that is not allowed: its variable's `name`, the value `found`, the `allowed`
    ones."""

    def __init__(self, name: str, found: str, allowed: tuple[str, ...]) -> None:
        super().__init__(name, found, allowed)
        self.name = name
        self.found = found
        self.allowed = allowed

    def __str__(self) -> str:
        return f"reading {self.name}: found {self.found!r}; set it to {choice_of(self.allowed)}, or unset it"


def choice_of(allowed: tuple[str, ...]) -> str:
    """Return `allowed` as a choice, for people: words to choose from, or descriptions such as "a size"."""
    if any(" " in each for each in allowed):
        return ", or ".join(allowed)
    return f"one of {', '.join(allowed)}" if len(allowed) > 1 else "".join(allowed)


class NoDirectoryError(CachegraphError):
    """A cache or configuration without a directory: none is named, and `user` has no home directory."""

    def __init__(
        self, user: str, what: str = "cache", variables: str = "CACHEGRAPH_DIR, HOME or XDG_CACHE_HOME"
    ) -> None:
        super().__init__(user, what, variables)
        self.user = user
        self.what = what
        self.variables = variables

    def __str__(self) -> str:
        return (
            f"looking for a place for the {self.what}: {self.user} has no home directory (HOME is not set, "
            f"or no absolute path, and no list of users has it); set {self.variables}"
        )


class UnsupportedPlatform(CachegraphError, ImportError):
    """A system on which a package does not work: what was being done (`doing`), the system `found`, `why`."""

    def __init__(self, doing: str, found: str, why: str) -> None:
        super().__init__(doing, found, why)
        self.doing = doing
        self.found = found
        self.why = why

    def __str__(self) -> str:
        return f"{self.doing} on {self.found}: {self.why} (docs/portability.md)"


def _joined(path: tuple[str, ...]) -> str:
    if not path:
        return "the value"
    if len(path) > _SHOWN_SEGMENTS:
        half = _SHOWN_SEGMENTS // 2
        path = (*path[:half], f"... {len(path) - 2 * half} more ...", *path[-half:])
    return " -> ".join(path)
