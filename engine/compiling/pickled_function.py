"""A function as a pickle carries it, and how it runs again in another process without rewriting or compiling.

What a pickle carries is a `CarriedProgram`: the key of the function, the program, the stored form of every kernel that it
calls, its data, and its optimized graph as bytes that nobody looks at unasked. Loading prefers the entries of the
cache where it is loaded, and takes what is not there from what was carried. A function that was not compiled (the
numpy backend) is carried as its graph.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cachegraph import pickling
from cachegraph.cache import Cache, default_cache
from cachegraph.caching.bundle import Bundle, BundledCache
from cachegraph.key import CacheKey
from cachegraph.pickling.large_arrays import ReadBlob
from cachegraph.store.entry import Hit, Miss
from cachegraph.toolchain import toolchain
from engine.compiling.compiled import CacheInfo, Compiled, Interpreted
from engine.compiling.graph_encoding import UsersOps, check_ops
from engine.compiling.key import engine_code
from engine.compiling.programs import linked_entries, load_program
from engine.errors import FunctionLoadError
from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from engine.graph.op import Op
from engine.graph.user_ops import is_users
from engine.runtime.execution import Convert, Execution
from engine.runtime.linking import KernelTally
from engine.runtime.program import pack_program

if TYPE_CHECKING:
    from logging import Logger

    from engine.graph.types import Type

OPTIMIZED = "optimized-graph"
"""The name of the blob that holds the optimized graph of a function, without its data."""

_PICKLED = ("engine.graph.fgraph", "engine.scalar", "engine.tensor", "engine.inner")
"""Where the classes of Ops and types are, and what rebuilds a graph: all that a stored graph may name."""

_ADVICE = "make the function in this process, or pickle it anew where code, packages and machine are the same"


@dataclass(frozen=True)
class CarriedGraph:
    """A function that each Op's reference implementation runs: its graph as it is interpreted."""

    graph: FrozenFunctionGraph
    n_outputs: int
    updated: tuple[int, ...]
    convert: Convert
    reason: str

    def load(self) -> Compiled:
        """The function, on a copy of the graph."""
        fgraph = self.graph.unfreeze()
        info = CacheInfo(outcome="carried", reason=self.reason)
        runner = Interpreted(fgraph, self.n_outputs, self.updated, self.convert)
        return Compiled(runner, info, fgraph.clone, lambda: self)


@dataclass(frozen=True)
class CarriedProgram:
    """A compiled function: `bundle` has its entry under `key` and those of its kernels, `data` the arrays to bind.

    `origin` says what made it (see `origin`), `types` are those of its inputs, shared variables among them. `bypass` is
    why the function has no key of its own, or empty. `ops` are the users' Ops that it names.
    """

    name: str
    key: CacheKey
    bypass: str
    origin: Mapping[str, str]
    types: tuple[Type, ...]
    n_outputs: int
    updated: tuple[int, ...]
    data: tuple[Any, ...]
    convert: Convert
    bundle: Bundle
    ops: Mapping[str, Op]

    def load(self) -> Compiled:
        """The function, linked into this process from the cache and what was carried.

        Raises FunctionLoadError where what was carried does not fit this process, or is damaged.
        """
        self._check_origin()
        cache = default_cache()
        try:
            return self._load_from(BundledCache(cache, self.bundle))
        except Exception:  # whatever the cache has, what was carried does not depend on it
            _log().info("loading the pickled function %s from the cache failed", self.name, exc_info=True)
        try:
            return self._load_from(BundledCache(None, self.bundle))
        except Exception as error:
            raise FunctionLoadError(self.name, f"what it carries does not load ({error})", _ADVICE) from error

    def _check_origin(self) -> None:
        here = origin()
        differences = [
            f"{name} {found} (here {here.get(name)})"
            for name, found in self.origin.items()
            if here.get(name) != found
        ]
        if differences:
            raise FunctionLoadError(self.name, f"it was made with {', '.join(differences)}", _ADVICE)
        try:
            check_ops(self.ops)
        except ValueError as error:
            raise FunctionLoadError(self.name, str(error), _ADVICE) from error

    def _load_from(self, entries: BundledCache) -> Compiled:
        begin = perf_counter()
        entry = self.bundle.lookup(self.key) if self.bypass else entries.lookup(self.key)
        if isinstance(entry, Miss):
            raise LookupError(f"the program: {entry.reason}, {entry.detail}")
        tally = KernelTally()
        runner = load_program(
            entries,
            entry.payload,
            [type.make_variable(None) for type in self.types],
            self.n_outputs,
            self.updated,
            self.data,
            self.convert,
            self.name,
            tally,
            {},
            self.ops,
        )
        info = self._info(entries, entry, tally, perf_counter() - begin)
        return Compiled(runner, info, lambda: self._optimized(entries, entry), lambda: self)

    def _info(self, entries: BundledCache, entry: Hit, tally: KernelTally, seconds: float) -> CacheInfo:
        """How the function came about: "hit" if the cache here had its entry, else "carried"."""
        carried = self.bypass or entries.taken.get(self.key, "")
        kernels = sum(key.level == "kernel" for key in entries.taken)
        functions = sum(key.level == "function" for key in entries.taken) + bool(self.bypass)
        return CacheInfo(
            outcome="carried" if carried else "hit",
            reason=carried,
            key=None if self.bypass else self.key.hex,
            found={
                "function": [1 + tally.functions[0] - functions, functions],
                "kernel": [tally.hits - kernels, kernels],
            },
            seconds={"load": seconds, "total": seconds},
            seconds_saved=max(sum(entry.seconds.values()) + tally.seconds_saved - seconds, 0.0),
        )

    def _optimized(self, entries: BundledCache, entry: Hit) -> FunctionGraph:
        own = self.bundle.lookup(self.key)
        for blobs in (entry.blobs, own.blobs if isinstance(own, Hit) else {}):
            graph = stored_graph(entries, blobs, self.data, self.ops)
            if graph is not None:
                return graph
        raise FunctionLoadError(
            self.name,
            "its optimized graph was not carried, or does not load",
            "it can be called nevertheless",
        )


def carry(
    name: str,
    key: CacheKey | None,
    bypass: str,
    execution: Execution,
    types: Sequence[Type],
    interface: tuple[int, tuple[int, ...]],
    data: Sequence[Any],
    convert: Convert,
    blobs: Mapping[str, bytes],
    ops: Mapping[str, Op],
) -> CarriedProgram:
    """What a pickle of a compiled function carries; `interface` is the number of outputs and what is updated, `ops` are the
    users' Ops that it names.

    Without a `key`, `bypass` says why. Raises SourceError where the engine's source cannot be read: no other process
    could tell whether its own is the same.
    """
    payload = pack_program(execution.program)
    named = CacheKey.build("function", {"program": payload}) if key is None else key
    short = CacheKey(named.level, (), named.digest, named.confirmation)
    bundle = Bundle()
    bundle.add(short, payload, {**blobs, **execution.program.blobs})
    for entry, content, its_blobs in linked_entries(execution):
        bundle.add(entry, content, its_blobs)
    n_outputs, updated = interface
    return CarriedProgram(
        name,
        short,
        bypass,
        origin(),
        tuple(types),
        n_outputs,
        updated,
        tuple(data),
        convert,
        bundle,
        dict(ops),
    )


def origin() -> dict[str, str]:
    """What decides whether a program made in one process runs in another: name -> release, digest or system."""
    return {
        "the engine's source": engine_code().hex(),
        **toolchain(),
        "system": f"{sys.platform} {platform.machine()}",
    }


def dump_graph(
    graph: FrozenFunctionGraph, arrays: Sequence[Any], users: UsersOps, blobs: dict[str, bytes]
) -> bytes:
    """`graph` pickled, without its data `arrays` and its users' Ops, which are named as `users` names them, and without its
    other large arrays, which are put among `blobs`.

    Raises UndescribedOpError for an Op that is not among these, and as dumps does.
    """

    def name_of(item: object) -> str | None:
        return users.name_of(item) if isinstance(item, Op) and is_users(item) else None

    return pickling.dumps(graph, arrays, name_of=name_of, blobs=blobs)


def load_graph(
    content: bytes, arrays: Sequence[Any], ops: Mapping[str, Op], read_blob: ReadBlob
) -> FrozenFunctionGraph:
    """What `dump_graph` wrote, on the data `arrays` and the users' Ops `ops`; raises as loads does."""
    graph: FrozenFunctionGraph = pickling.loads(content, _PICKLED, arrays, at_hand=ops, read_blob=read_blob)
    return graph


def stored_graph(
    entries: Cache | BundledCache, blobs: Mapping[str, str], arrays: Sequence[Any], ops: Mapping[str, Op]
) -> FunctionGraph | None:
    """The optimized graph kept with an entry that has these blobs, on the data `arrays` and the users' Ops `ops`; None if it
    cannot be had."""
    content = entries.read_blob(blobs[OPTIMIZED]) if OPTIMIZED in blobs else None
    if content is None:
        return None
    try:
        return load_graph(content, arrays, ops, entries.read_blob).unfreeze()
    except Exception:  # whatever a stored graph holds, its program runs
        _log().warning("the stored graph %s cannot be loaded", blobs[OPTIMIZED], exc_info=True)
        return None


def _log() -> Logger:
    import logging  # 7 ms, which a warm start does not need

    return logging.getLogger("engine")
