"""Pickling of what a cache entry carries besides its program, and loading it without trusting it.

Loading resolves only what the packages that the caller names hold: their classes, and functions declared with
`rebuilds_pickled`; and the few functions by which numpy rebuilds its arrays, scalars and dtypes. Anything else is
refused before it is called.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from cachegraph.errors import CachegraphError

F = TypeVar("F", bound=Callable[..., Any])

_NUMPY = frozenset(
    (module, name)
    for root in ("numpy.core", "numpy._core")
    for module, name in (
        (f"{root}.multiarray", "_reconstruct"),
        (f"{root}.multiarray", "scalar"),
        (f"{root}.numeric", "_frombuffer"),
    )
) | {("numpy", "ndarray"), ("numpy", "dtype")}
_BUILTINS = frozenset(
    ("builtins", name) for name in ("frozenset", "set", "slice", "complex", "range", "bytearray")
)


class UntrustedPickle(CachegraphError):
    """A pickle names something that it may not load: `module` and `name`; `trusted` lists the packages it may use."""

    def __init__(self, module: str, name: str, trusted: tuple[str, ...]) -> None:
        super().__init__(module, name, trusted)
        self.module = module
        self.name = name
        self.trusted = trusted

    def __str__(self) -> str:
        return (
            f"loading a pickle: found {self.module}.{self.name}, where only classes of {', '.join(self.trusted)} "
            "are loaded; treat the entry it came from as untrusted"
        )


def rebuilds_pickled(function: F) -> F:
    """Declare that pickles may call `function`: of a trusted package they call its classes and these, nothing else."""
    function._rebuilds_pickled = True  # type: ignore[attr-defined]
    return function


def dumps(value: object, external: Sequence[object] = ()) -> bytes:
    """Return `value` pickled, the objects of `external` named by their number only.

    Raises what pickle raises for what cannot be pickled.
    """
    file = io.BytesIO()
    _Pickler(file, external).dump(value)
    return file.getvalue()


def loads(
    content: bytes,
    trusted: Sequence[str],
    external: Sequence[object] = (),
    named: Collection[tuple[str, str]] = (),
) -> Any:
    """Return what `content` holds, with the objects of `external` in the places of those that `dumps` left out.

    `named` are functions, (module, name), that it may call besides.
    Raises UntrustedPickle if it names anything outside `trusted` (packages or modules, with all below them), and pickle.UnpicklingError if it names
    an external object that there is not.
    """
    return _Unpickler(io.BytesIO(content), tuple(trusted), external, frozenset(named)).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, external: Sequence[object]) -> None:
        super().__init__(file, protocol=5)
        self._numbers = {id(item): number for number, item in enumerate(external)}

    def persistent_id(self, obj: object) -> int | None:
        return self._numbers.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(
        self,
        file: io.BytesIO,
        trusted: tuple[str, ...],
        external: Sequence[object],
        named: frozenset[tuple[str, str]],
    ) -> None:
        super().__init__(file)
        self._named = named
        self._trusted = trusted
        self._external = external

    def persistent_load(self, pid: object) -> object:
        if not isinstance(pid, int) or not 0 <= pid < len(self._external):
            raise pickle.UnpicklingError(f"external object {pid!r}, of {len(self._external)} that there are")
        return self._external[pid]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _NUMPY | _BUILTINS | self._named:
            return super().find_class(module, name)
        # A dotted name could walk from a trusted module into whatever that module imported.
        if self._is_trusted(module) and "." not in name:
            found = super().find_class(module, name)
            loads = isinstance(found, type) or getattr(found, "_rebuilds_pickled", False)
            if loads and self._is_trusted(getattr(found, "__module__", "")):
                return found
        raise UntrustedPickle(module, name, self._trusted)

    def _is_trusted(self, module: str) -> bool:
        return any(f"{module}.".startswith(f"{package}.") for package in self._trusted)
