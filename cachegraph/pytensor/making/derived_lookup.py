"""The lookup of one derived graph: found in the cache, or derived and stored (describe/derived.py)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from pytensor.graph.basic import equal_computations

from cachegraph.cache import Artifact, Cache, Miss, default_cache
from cachegraph.errors import CacheMissError, SourceError, Unfingerprintable
from cachegraph.logger import logger
from cachegraph.pytensor.errors import Changed, Unstorable, note_failure

Derive = Callable[[], Sequence[Any]]

DENSITY = "density"
"""The kind of a derivation of log densities, which others may have a part in."""

MOST_ALIKE = 8
"""The most graphs of one look that a process stores: whoever goes through many data has each of them once."""

_stored: Counter[object] = Counter()
"""How many graphs were stored, by their look."""


def found_or_derived(
    kind: str, graph: Sequence[Any], told: object, derive: Derive, *, is_extended: bool = False
) -> list[Any]:
    """Return what `derive` makes of `graph`: found, or made and stored. Raises what `derive` raises.

    `told` is all else that `derive` reads. If `graph` is extended, the result is built on its variables;
    otherwise on those that it is computed from.
    """
    return _Derivation(kind, derive).result(graph, told, is_extended)


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """Collect what PyTensor and PyMC warn of meanwhile: what is found later would not warn of it."""
    handler = _Collecting(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("pytensor", "pymc")]
    for of_host in loggers:
        of_host.addHandler(handler)
    try:
        yield handler.found
    finally:
        for of_host in loggers:
            of_host.removeHandler(handler)


class _Collecting(logging.Handler):
    """A handler that keeps messages, and shows none."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


class _Derivation:
    """The lookup of one derived graph; after any failure it is derived as without the cache."""

    def __init__(self, kind: str, derive: Derive) -> None:
        self._kind = kind
        self._derive = derive
        self._described: Any = None
        self._hand: Any = None
        self._look: object = None
        self._made: list[Any] | None = None
        self._read: list[Any] | None = None
        self._refusal: BaseException | None = None

    def result(self, graph: Sequence[Any], told: object, is_extended: bool) -> list[Any]:
        """Return the derived graph; raises what deriving it raises."""
        try:
            cache = default_cache()
            # The mode verify derives a share anew: if that differs, so does the key of the function on it.
            if cache.absent is None and not cache.samples_hit():
                return self._looked_up(cache, graph, told, is_extended)
        except (Unfingerprintable, SourceError, CacheMissError) as error:
            logger("cachegraph").info("the %s of a graph is made anew: %s", self._kind, error)
        except (Changed, Unstorable) as error:
            logger("cachegraph").info("the %s of a graph is not stored: %s", self._kind, error.found)
        except Exception as error:
            if error is self._refusal:
                raise
            note_failure(f"looking the {self._kind} of a graph up", "it", error)
        return list(self._derive()) if self._made is None else self._made

    def _looked_up(self, cache: Cache, graph: Sequence[Any], told: object, is_extended: bool) -> list[Any]:
        from cachegraph.pytensor.describe.derived import describe_derived, refuse_foreign_densities

        if self._kind == DENSITY:
            refuse_foreign_densities()
        self._described = describe_derived(self._kind, graph, told)
        self._hand = self._in_hand(graph, is_extended)
        self._look = self._kind, tuple([type(node.op) for node in self._described.nodes])
        key = self._described.key
        if _stored[self._look] < MOST_ALIKE:
            return cache.get_or_build(key, self._build, self._load).value
        found = cache.find(key, self._load)
        if isinstance(found, Miss):
            raise Unstorable(f"{MOST_ALIKE} graphs that differ in their data alone")
        return found.value

    def _in_hand(self, graph: Sequence[Any], is_extended: bool) -> Any:
        from cachegraph.pytensor.stored.derived_graph import InHand
        from cachegraph.pytensor.stored.externals import Context

        given, nodes = self._described.given, self._described.nodes if is_extended else ()
        given = (*given, *(output for node in nodes for output in node.outputs))
        return InHand(given, tuple(graph), Context(arrays=self._described.basis.arrays))

    def _load(self, payload: bytes) -> list[Any]:
        """Return the graph in `payload`; of what was just made, the graph as it was read back."""
        from cachegraph.pytensor.stored.derived_graph import unpack_derived

        return unpack_derived(payload, self._hand) if self._read is None else self._read

    def _build(self) -> Artifact:
        """Derive and pack; raises what deriving raises, Changed, and Unstorable without a stored form."""
        begin = perf_counter()
        try:
            with _complaints() as complaints:
                self._made = list(self._derive())
        except BaseException as error:
            self._refusal = error
            raise
        seconds = perf_counter() - begin
        if complaints:
            raise Unstorable(f"a warning, which is given each time: {complaints[0]}")
        content = self._packed(self._made)
        _stored[self._look] += 1
        summary = f"{self._kind} of {len(self._described.nodes)} nodes"
        return Artifact(content, seconds={"derive": seconds}, summary=summary)

    def _packed(self, made: list[Any]) -> bytes:
        """Return the stored form, and keep what is read back of it, which is what others find."""
        from cachegraph.pytensor.stored.derived_graph import pack_derived

        try:
            content = pack_derived(made, self._hand)
            read = self._load(content)
        except Exception as error:
            raise Unstorable(f"{type(error).__name__}: {error}") from error
        if not equal_computations(read, made):
            raise Unstorable("another graph where what was packed is read back")
        if changed := self._described.basis.changed():
            raise Changed(changed)
        self._read = read
        return content
