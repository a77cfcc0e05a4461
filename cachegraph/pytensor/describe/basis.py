"""The basis of a description: the data and code that it was made from, and a check that they are
unchanged.

A key is made in `pytensor.function`, but numba compiles at the first call, or at a later one with
arguments of other types: with the numbers that constants hold then, and the globals and free variables
that user code has then. Stored code is used, and code is stored, only while all that the key describes is
unchanged.

PyTensor also looks implementations of Ops up in `pytensor.function`. A hit looks up none; if its code
turns out not to be stored, it is linked at the first call, with the implementations that were registered
when the function was made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.pytensor.describe.graphs import encode_frozen, encoding_context
from cachegraph.pytensor.describe.held_arrays import HeldArrays
from cachegraph.pytensor.describe.registries import DISPATCHERS, is_of_pytensor
from cachegraph.pytensor.describe.values import EncodingContext, encode_value
from cachegraph.pytensor.errors import Changed

CHANGED = "changed-while-compiling"
"""The bypass reason of a function that is no longer what its key describes."""


class Basis:
    """The arrays and the code that one description was made from, and the implementations registered then."""

    def __init__(self, context: EncodingContext) -> None:
        self.arrays = HeldArrays(context.arrays)
        self.implementations = Implementations.now()
        self._coded = tuple(context.coded)

    def __reduce__(self) -> Any:
        """Pickle the arrays alone: a reader has other registrations, and its own code."""
        return _carried, (self.arrays,)

    def changed(self) -> str | None:
        """Return what is not as it was described, for people; None if nothing has changed."""
        if self.arrays.have_changed():
            return "the data of a constant"
        if not _is_as_written(self._coded):
            return "the code of an Op, or what that reads"
        if self.implementations.have_changed():
            return "what an Op is compiled by, or what that reads"
        return None

    def refuse_changed(self, is_key_same: bool) -> None:
        """Raise Changed if what was compiled is not, or may not be, what the key describes.

        `is_key_same` says whether the key, made again, is the same.
        """
        changed = self.changed()
        if changed is None and self.implementations.are_lost():
            changed = "what PyTensor compiles an Op by"
        if changed is None and not is_key_same:
            changed = "a setting of numba, or what is registered with it,"
        if changed is not None:
            raise Changed(changed)


def _carried(arrays: HeldArrays) -> Basis:
    context = EncodingContext((), encode_frozen)
    basis = Basis(context)
    basis.arrays = arrays
    return basis


def _is_as_written(coded: Sequence[tuple[bytes, Any, Any]]) -> bool:
    if not coded:
        return True
    context = encoding_context()
    try:
        return all(write(item, context) == written for written, item, write in coded)
    except Unfingerprintable:
        return False


_LINKING = "pytensor.link."
Registry = dict[type, Callable[..., Any]]
Row = tuple[str, type, Callable[..., Any]]


class Implementations:
    """The tables of PyTensor's numba linker as they were at one time.

    A table that was not loaded then had PyTensor's own rows.
    """

    def __init__(self, tables: dict[str, Registry]) -> None:
        self._tables = tables
        self._rows = [row for name, registry in tables.items() for row in _by_others(name, registry)]
        self._written = _encoded(self._rows)

    @classmethod
    def now(cls) -> Implementations:
        """Return those that are registered now."""
        return cls({name: dict(_registry_of(table)) for name, table in _tables()})

    def have_changed(self) -> bool:
        """Return True if the code of one of them, or what that code reads, has changed."""
        return self._written is None or self._written != _encoded(self._rows)

    def are_lost(self) -> bool:
        """Return True if others have replaced one of PyTensor's own in a table that was not loaded yet."""
        loaded_since = ((name, table) for name, table in _tables() if name not in self._tables)
        return any(
            is_of_pytensor(cls, cls)
            for name, table in loaded_since
            for _, cls, _ in _by_others(name, _registry_of(table))
        )

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Have PyTensor use these tables for a while, whatever was registered since."""
        with ExitStack() as stack:
            for name, table in _tables():
                now = _registry_of(table)
                then = self._tables.get(name)
                if then is None:
                    then = {cls: function for cls, function in now.items() if is_of_pytensor(cls, function)}
                if then != now:
                    stack.enter_context(_holding(table, now, then))
            yield


@contextmanager
def _holding(table: Any, now: Registry, then: Registry) -> Iterator[None]:
    """Have `table`, whose rows are `now`, hold those of `then`; what is registered meanwhile stays."""
    before = dict(now)
    now.clear()
    now.update(then)
    table._clear_cache()
    try:
        yield
    finally:
        added = {cls: function for cls, function in now.items() if then.get(cls) is not function}
        now.clear()
        now.update(before | added)
        table._clear_cache()


def _by_others(name: str, registry: Registry) -> list[Row]:
    """Return the rows of table `name` that are not PyTensor's own, cached until something is registered."""
    known = _known.get(name)
    if known is None or known[0] != registry:
        rows = registry.items()
        found = [(name, cls, function) for cls, function in rows if not is_of_pytensor(cls, function)]
        known = _known[name] = dict(registry), found
    return known[1]


_known: dict[str, tuple[Registry, list[Row]]] = {}


def _encoded(rows: Sequence[Row]) -> bytes | None:
    """Return the encoding of `rows` with their code; None if some of it has none."""
    context = encoding_context()
    try:
        return encode_value(sorted(encode_value(row, context) for row in rows), context)
    except Unfingerprintable:
        return None


def _tables() -> Iterator[tuple[str, Any]]:
    """Yield the loaded tables of the linker, by name."""
    for module, names in DISPATCHERS.items():
        loaded = sys.modules.get(module)
        if module.startswith(_LINKING) and loaded is not None:
            yield from ((f"{module}.{name}", getattr(loaded, name)) for name in names)


def _registry_of(table: Any) -> Registry:
    """Return the rows of a singledispatch function, to change them: its `registry` is read-only."""
    register = table.register
    cells = dict(zip(register.__code__.co_freevars, register.__closure__, strict=True))
    registry: Registry = cells["registry"].cell_contents
    return registry
