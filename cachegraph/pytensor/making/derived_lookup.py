"""The lookup of one derived graph: found in the cache, or derived and stored (describe/derived.py)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from pytensor.graph.basic import equal_computations

from cachegraph.cache import Artifact, Found, default_cache
from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.logger import logger
from cachegraph.pytensor.errors import Changed, note_failure

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
    lookup = _Derivation(kind)
    found = lookup.found(graph, told, is_extended)
    if found is not None:
        return found
    begin = perf_counter()
    with _complaints() as complaints:
        made = list(derive())
    return made if complaints else lookup.kept(made, perf_counter() - begin)


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

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._described: Any = None
        self._hand: Any = None
        self._look: object = None

    def found(self, graph: Sequence[Any], told: object, is_extended: bool) -> list[Any] | None:
        """Return the result from the cache, None if it is not there; never raises."""
        try:
            return self._find(graph, told, is_extended)
        except (Unfingerprintable, SourceError) as error:
            logger("cachegraph").info("the %s of a graph is made anew: %s", self._kind, error)
        except Exception as error:
            note_failure(f"looking the {self._kind} of a graph up", "it", error)
        self._described = None
        return None

    def _find(self, graph: Sequence[Any], told: object, is_extended: bool) -> list[Any] | None:
        cache = default_cache()
        if cache.absent is not None:
            return None
        from cachegraph.pytensor.describe.derived import describe_derived, refuse_foreign_densities

        if self._kind == DENSITY:
            refuse_foreign_densities()
        self._described = describe_derived(self._kind, graph, told)
        self._hand = self._in_hand(graph, is_extended)
        self._look = self._kind, tuple([type(node.op) for node in self._described.nodes])
        found = cache.find(self._described.key, self._load)
        return found.value if isinstance(found, Found) and not cache.samples_hit() else None

    def _in_hand(self, graph: Sequence[Any], is_extended: bool) -> Any:
        from cachegraph.pytensor.stored.derived_graph import InHand
        from cachegraph.pytensor.stored.externals import Context

        given, nodes = self._described.given, self._described.nodes if is_extended else ()
        given = (*given, *(output for node in nodes for output in node.outputs))
        return InHand(given, tuple(graph), Context(arrays=self._described.basis.arrays))

    def _load(self, payload: bytes) -> list[Any]:
        from cachegraph.pytensor.stored.derived_graph import unpack_derived

        return unpack_derived(payload, self._hand)

    def kept(self, made: list[Any], seconds: float) -> list[Any]:
        """Store the result, if it has a key and a stored form, and return it read back; else as it is.

        A process that finds it then compiles the very same graph. Never raises.
        """
        if self._described is None or _stored[self._look] >= MOST_ALIKE:
            return made
        from cachegraph.pytensor.stored.derived_graph import pack_derived

        try:
            content = pack_derived(made, self._hand)
            found = self._load(content)
            if not equal_computations(found, made):
                raise TypeError("what is read back is another graph")
            if changed := self._described.basis.changed():
                raise Changed(changed)
            summary = f"{self._kind} of {len(self._described.nodes)} nodes"
            artifact = Artifact(content, seconds={"derive": seconds}, summary=summary)
            default_cache().store(self._described.key, artifact)
            _stored[self._look] += 1
        except Exception as error:  # the graph is derived nevertheless
            logger("cachegraph").info("the %s of a graph is not stored: %s", self._kind, error)
            return made
        return found
