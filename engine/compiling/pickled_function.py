"""`PickledProgram`: a compiled function in a form that can be pickled, and runs elsewhere without being
compiled.

A pickle contains the key of the function, its program, the stored form of every kernel that it calls,
its data, and its optimized graph as bytes that are read only when somebody asks. Loading prefers the
entries of the cache in the process that loads, and takes the rest from the pickle.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cachegraph.cache import default_cache
from cachegraph.caching.carried import CarriedEntries, CarryingCache
from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import Hit, Miss
from cachegraph.toolchain import toolchain
from engine.compiling.compiled import CacheInfo, Compiled
from engine.compiling.load import CompilationTally, LoadContext, linked_entries, load_program
from engine.compiling.surroundings import engine_code
from engine.runtime.execution import Execution
from engine.runtime.program import pack_program

if TYPE_CHECKING:
    from engine.compiling.interface import Interface
    from engine.compiling.request import FunctionRequest
    from engine.errors import FunctionLoadError
    from engine.graph.fgraph import FunctionGraph
    from engine.graph.op import Op

_ADVICE = (
    "make the function in this process, or pickle it again where code, packages and machine are the same"
)


class PickledProgram(NamedTuple):
    """A compiled function: `carried` has its entry under `key` and those of its kernels, `data` the
    arrays to bind.

    `origin` says what it was compiled by (see `origin`). `bypass` is the reason why the function has no
    key of its own, or empty. `ops` are the user Ops that its programs name.
    """

    name: str
    interface: Interface
    key: CacheKey
    bypass: str
    origin: Mapping[str, str]
    data: tuple[Any, ...]
    carried: CarriedEntries
    ops: Mapping[str, Op]

    def load(self) -> Compiled:
        """Return the function, linked into this process from the cache and the pickle.

        Raises FunctionLoadError if the pickle does not fit this process, or is damaged.
        """
        self._check_origin()
        cache = default_cache()
        try:
            return self._load_from(CarryingCache(cache, self.carried))
        except Exception:  # whatever the cache has, what was carried does not depend on it
            logger("engine").info(
                "loading the pickled function %s from the cache failed", self.name, exc_info=True
            )
        try:
            return self._load_from(CarryingCache(None, self.carried))
        except Exception as error:
            raise self._error(f"what its pickle contains does not load ({error})", _ADVICE) from error

    def _check_origin(self) -> None:
        here = origin()
        differences = [
            f"{name} {found} (here {here.get(name)})"
            for name, found in self.origin.items()
            if here.get(name) != found
        ]
        if differences:
            raise self._error(f"it was made with {', '.join(differences)}", _ADVICE)
        if not self.ops:
            return
        from engine.compiling.graph_encoding import check_ops  # the language, which most functions do without

        try:
            check_ops(self.ops)
        except ValueError as error:
            raise self._error(str(error), _ADVICE) from error

    def _load_from(self, entries: CarryingCache) -> Compiled:
        begin = perf_counter()
        entry = self.carried.lookup(self.key) if self.bypass else entries.lookup(self.key)
        if isinstance(entry, Miss):
            raise LookupError(f"the program: {entry.reason}, {entry.detail}")
        context = LoadContext(entries, self.name, self.ops, CompilationTally())
        runner = load_program(context, entry.payload, self.interface, self.data)
        info = self._info(entries, entry, context.tally, perf_counter() - begin)
        return Compiled(runner, info, lambda: self._optimized(entries, entry), lambda: self)

    def _info(self, entries: CarryingCache, entry: Hit, tally: CompilationTally, seconds: float) -> CacheInfo:
        """Return how the function was made: "hit" if the cache here had its entry, else "carried"."""
        reason = self.bypass or entries.taken.get(self.key, "")
        tally.count("function", True, sum(entry.seconds.values()))
        for level in [key.level for key in entries.taken] + ["function"] * bool(self.bypass):
            tally.found[level][0] -= 1
            tally.found[level][1] += 1
        return CacheInfo(
            outcome="carried" if reason else "hit",
            reason=reason,
            key=None if self.bypass else self.key.hex,
            found=tally.found,
            seconds={"load": seconds, "total": seconds},
            seconds_saved=max(tally.seconds_saved - seconds, 0.0),
        )

    def _error(self, found: str, advice: str) -> FunctionLoadError:
        from engine.errors import FunctionLoadError  # a hit raises none

        return FunctionLoadError(self.name, found, advice)

    def _optimized(self, entries: CarryingCache, entry: Hit) -> FunctionGraph:
        from engine.compiling.inner_graphs import load_optimized

        own = self.carried.lookup(self.key)
        for blobs in (entry.blobs, own.blobs if isinstance(own, Hit) else {}):
            graph = load_optimized(entries, blobs, self.data, self.ops)
            if graph is not None:
                return graph
        raise self._error(
            "its optimized graph is not in the pickle, or does not load",
            "it can be called nevertheless",
        )


def pickled_program(
    request: FunctionRequest,
    key: CacheKey | None,
    bypass: str,
    execution: Execution,
    blobs: Mapping[str, bytes],
    ops: Mapping[str, Op],
) -> PickledProgram:
    """Return a compiled function in the form that is pickled. `blobs` store its optimized graph, `ops`
    are the user Ops that its programs name; without a `key`, `bypass` says why.

    Raises SourceError if the engine's source cannot be read: no other process could tell whether its
    own is the same.
    """
    payload = pack_program(execution.program)
    named = CacheKey.build("function", {"program": payload}) if key is None else key
    short = CacheKey(named.level, (), named.digest, named.confirmation)
    carried = CarriedEntries()
    carried.add(short, payload, {**blobs, **execution.program.blobs})
    for called, content, its_blobs in linked_entries(execution):
        carried.add(called, content, its_blobs)
    return PickledProgram(
        request.name, request.interface, short, bypass, origin(), tuple(request.data), carried, dict(ops)
    )


def origin() -> dict[str, str]:
    """Return what must be the same where a program is built and where it runs: name -> release, digest
    or system."""
    return {
        "the engine's source": engine_code().hex(),
        **toolchain(),
        "system": f"{sys.platform} {platform.machine()}",
    }
