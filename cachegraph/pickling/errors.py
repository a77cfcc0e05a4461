"""The errors of pickling and loading."""

from __future__ import annotations

import pickle

from cachegraph.errors import CachegraphError


class Unpicklable(CachegraphError):
    """A value that cannot be pickled: `found`, what in it prevents that, the `path` to it, and `advice`."""

    def __init__(self, found: str, advice: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(found, advice, path)
        self.found = found
        self.advice = advice
        self.path = path

    def __str__(self) -> str:
        return f"cannot pickle {' -> '.join(('value', *self.path))}: found {self.found}; {self.advice}"


class InvalidPickle(CachegraphError, pickle.UnpicklingError):
    """Bytes that are not a pickle of this format; `found` says what they are."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"loading a pickle: found {self.found}; treat the entry it came from as damaged or foreign"


class UntrustedPickle(CachegraphError):
    """A pickle that names what it may not load: `module` and `name`; `trusted` lists the packages it may
    use."""

    def __init__(self, module: str, name: str, trusted: tuple[str, ...]) -> None:
        super().__init__(module, name, trusted)
        self.module = module
        self.name = name
        self.trusted = trusted

    def __str__(self) -> str:
        return (
            f"loading a pickle: found {self.module}.{self.name}, where only classes of "
            f"{', '.join(self.trusted)} and functions that the reader declares are loaded; "
            "treat the entry it came from as untrusted"
        )


class UnresolvedFunction(CachegraphError):
    """A function that a pickle names and this process lacks: its `module` and `place`, and what was
    `found`."""

    def __init__(self, module: str, place: str, found: str) -> None:
        super().__init__(module, place, found)
        self.module = module
        self.place = place
        self.found = found

    def __str__(self) -> str:
        return (
            f"loading a pickle, which names the function {self.module}.{self.place}: {self.found}; "
            "load it where the same packages are installed"
        )
