"""From a frozen graph to something that runs: found in the cache, or rewritten, lowered, compiled and kept there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cachegraph.cache import Artifact, Cache, Correction, Found, default_cache
from cachegraph.errors import CacheMissError, SourceError, Unfingerprintable
from cachegraph.key import CacheKey
from cachegraph.pickling.large_arrays import ReadBlob
from engine.compiling.callback_functions import Callees
from engine.compiling.compiled import CacheInfo, Compiled, Interpreted
from engine.compiling.graph_encoding import UsersOps
from engine.compiling.key import data_constants, function_key, inner_constants, op_key
from engine.compiling.mode import Mode
from engine.compiling.pickled_function import (
    OPTIMIZED,
    CarriedGraph,
    CarriedProgram,
    carry,
    dump_graph,
    load_graph,
    stored_graph,
)
from engine.compiling.programs import compile_program, load_program
from engine.errors import FunctionRefused, UndescribedOpError
from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from engine.graph.user_ops import users_ops
from engine.runtime.execution import Callee, Convert, Execution
from engine.runtime.linking import KernelTally
from engine.scalar.embedded import refuse, refused_signatures

if TYPE_CHECKING:
    from logging import Logger

    from engine.graph.rewrite_query import RewriteDatabaseQuery
    from engine.graph.types import Type
    from engine.rewriting.rewriters import RewriteReport


@dataclass
class Specification:
    """What is to be compiled: a graph whose first `n_outputs` outputs are returned, the others replacing the values of
    the inputs at the positions `updated`."""

    graph: FrozenFunctionGraph
    n_outputs: int
    updated: tuple[int, ...]
    mode: Mode
    name: str
    convert: Convert


def compile_function(wanted: Specification) -> Compiled:
    """What runs `wanted`: from the cache if it has it, else built and kept there.

    Raises LoweringError for an Op without a kernel, and CacheMissError where CACHEGRAPH_ON_MISS is "error".
    """
    if wanted.mode.linker == "numpy":
        return _interpreted(wanted)
    cache = default_cache()
    users = UsersOps()
    work = _Work(wanted, cache, users)
    begin = perf_counter()
    try:
        key = _describe(wanted, users)
    except Unfingerprintable as error:
        return _Work(wanted, cache, UsersOps(is_open=True)).bypass(str(error), "unfingerprintable")
    except SourceError as error:
        # No key describes what this process imported, its kernels neither.
        off = Cache(replace(cache.settings, mode="off"))
        return _Work(wanted, off, UsersOps(is_open=True)).bypass(str(error), "source")
    work.info.seconds["key"] = perf_counter() - begin
    try:
        return work.find_or_build(key)
    except UndescribedOpError as error:
        return _Work(wanted, cache, UsersOps(is_open=True)).bypass(str(error), "unfingerprintable")


def _describe(wanted: Specification, users: UsersOps) -> CacheKey:
    interface = (wanted.n_outputs, wanted.updated)
    query = wanted.mode.optimizer
    return function_key(wanted.graph, interface, _describe_rewrites(query), (wanted.mode.linker,), users)


def _describe_rewrites(query: RewriteDatabaseQuery) -> tuple[tuple[str, ...], ...]:
    """The names that choose the rewrites: which ones follows from the engine's code, another part of the key."""
    _refuse_foreign_rewrites()
    return tuple(sorted(query.include)), tuple(sorted(query.require)), tuple(sorted(query.exclude))


def _refuse_foreign_rewrites() -> None:
    """Raise Unfingerprintable if rewrites were registered that are not the engine's: its source does not tell them."""
    # Nobody has registered anything where it is not imported yet, or another thread has begun to.
    optdb = getattr(sys.modules.get("engine.rewriting.pipeline"), "optdb", None)
    foreign = optdb().foreign() if optdb is not None else []
    if foreign:
        advice = "rewrites registered by others are in no key; register none to have functions cached"
        raise Unfingerprintable(f"rewrite {foreign[0]}", advice, ("rewrites", "optdb"))


class _Work:
    """One compilation: what it has measured and built so far. `users` are the users' Ops of the graph."""

    def __init__(self, wanted: Specification, cache: Cache, users: UsersOps) -> None:
        self.users = users
        self.wanted = wanted
        self.cache = cache
        self.info = CacheInfo()
        self.kernels = KernelTally()
        self.graphs = _Graphs(cache, wanted.mode)
        self.trusts_graphs = True
        self.built: FrozenFunctionGraph | None = None
        self.callees: Mapping[str, Callee] = {}
        self.data = data_constants(wanted.graph)

    def find_or_build(self, key: CacheKey) -> Compiled:
        """The function stored under `key`, or one that is built and stored there."""
        begin = perf_counter()
        found = self.cache.get_or_build(key, self.build, self.load, self.verify)
        info = self.info
        info.outcome, info.reason, info.key = found.outcome, found.reason, key.hex
        if self.cache.absent is not None:
            info.outcome = "bypass"
        info.seconds["load"] = found.load_seconds
        info.seconds["total"] = perf_counter() - begin + info.seconds.get("key", 0.0)
        self._count(found)
        return self._compiled(found.value, key, found.blobs)

    def verify(self, found: Found[Execution]) -> Correction[Execution] | None:
        """Build the function anew and compare; its kernels are compared while it is built."""
        from engine.compiling.verification import difference  # nothing but the mode verify needs it

        again = _Work(self.wanted, self.cache, self.users)
        artifact = again.build()
        with self.cache.holding(artifact.blobs):
            runner = again.load(artifact.payload)
        stored = stored_graph(self.cache, found.blobs, self._arrays(), self.users.by_name)
        graphs = stored.freeze() if stored is not None else None, again.built
        differs = difference(graphs, (found.value, runner), [v.type for v in self.wanted.graph.inputs])
        return Correction(differs, artifact, runner) if differs else None

    def bypass(self, reason: str, kind: str) -> Compiled:
        """The function, built without an entry of its own; `kind` is what `reason` is counted under."""
        if self.cache.settings.on_miss == "error":
            raise CacheMissError("function", "none", reason)
        self.cache.note_bypass("function", kind)
        begin = perf_counter()
        artifact = self.build()
        with self.cache.holding(artifact.blobs):
            runner = self.load(artifact.payload)
        self.info.outcome, self.info.reason = "bypass", reason
        self.info.seconds["total"] = perf_counter() - begin
        self.info.found = {
            **self.kernels.found_functions,
            **self.graphs.found,
            "kernel": [self.kernels.hits, self.kernels.misses],
        }
        self._count_parts()
        return self._compiled(runner, None, {})

    def build(self) -> Artifact:
        """Rewrite the graph, lower it and link its kernels; again, if a user's function cannot be a part of these, and again
        with every inner graph rewritten anew, if it does not work out with those that the cache has."""
        while True:
            try:
                return self._build()
            except FunctionRefused as reason:
                (_log().info if reason.is_expected else _log().warning)("%s", reason)
                refuse(reason.op, reason.signature)
            except CacheMissError:
                raise
            except Exception:  # whatever a stored graph makes of what is done with it
                if not self.trusts_graphs or not self.graphs.has_found:
                    raise
                _log().warning(
                    "%s cannot be made of the stored forms of its inner graphs, which are rewritten anew",
                    self.wanted.name,
                    exc_info=True,
                )
                self.trusts_graphs = False

    def _build(self) -> Artifact:
        begin = perf_counter()
        self.graphs = _Graphs(self.cache, self.wanted.mode, self.trusts_graphs)
        fgraph, report = _rewritten(self.wanted, self.graphs)
        rewritten = perf_counter()
        self.kernels = KernelTally()
        functions = Callees(self.cache, self.wanted.mode, self.kernels, self.wanted.name, self.users)
        built = compile_program(
            self.cache,
            fgraph,
            self.wanted.n_outputs,
            self.wanted.updated,
            self.data,
            tuple(inner_constants(self.wanted.graph)),
            self.kernels,
            functions,
            self.users.name_of,
        )
        self.callees = built.callees
        self.built = fgraph.freeze()
        own = {"rewrite": rewritten - begin, "lower": built.seconds}
        self.info.rewrites = report.total
        self.info.seconds.update(own, compile=self.kernels.seconds)
        needed = (*built.needed, *self.graphs.used)
        blobs = {**self._blobs(self.built), **built.blobs}
        return Artifact(built.payload, blobs, own, self._summary(fgraph), needed)

    def _blobs(self, optimized: FrozenFunctionGraph) -> dict[str, bytes]:
        """The optimized graph without its data, which are each function's own, and its large constants; nothing if it cannot
        be pickled."""
        blobs: dict[str, bytes] = {}
        try:
            return {OPTIMIZED: dump_graph(optimized, self._arrays(), self.users, blobs), **blobs}
        except Exception as error:  # whoever looks at the graph after a hit gets it by rewriting
            _log().info("the optimized graph of %s is not kept: %s", self.wanted.name, error)
            return {}

    def _arrays(self) -> list[Any]:
        return [constant.data for constant in self.data]

    def load(self, payload: bytes) -> Execution:
        """Link the program in `payload` and bind this function's data to it."""
        tally = self.kernels if self.built is None else None
        wanted = self.wanted
        return load_program(
            self.cache,
            payload,
            wanted.graph.inputs,
            wanted.n_outputs,
            wanted.updated,
            self._arrays(),
            wanted.convert,
            wanted.name,
            tally,
            self.callees,
            self.users.by_name,
        )

    def _summary(self, fgraph: FunctionGraph) -> str:
        nodes = f"{len(self.wanted.graph.nodes)} nodes, {len(fgraph.apply_nodes)} after rewriting"
        return f"{self.wanted.name}: {nodes}"

    def _count(self, found: Found[Execution]) -> None:
        is_hit = found.outcome == "hit"
        hits, misses = self.kernels.functions
        self.info.found = {
            "function": [hits + is_hit, misses + (not is_hit)],
            **self.graphs.found,
            "kernel": [self.kernels.hits, self.kernels.misses],
        }
        if is_hit:
            self.info.seconds_saved = sum(found.seconds.values()) - found.load_seconds
        self._count_parts()

    def _count_parts(self) -> None:
        self.info.seconds_saved += self.kernels.seconds_saved + self.graphs.seconds_saved
        self.info.compilations = self.kernels.compiled

    def _compiled(self, runner: Execution, key: CacheKey | None, blobs: Mapping[str, str]) -> Compiled:
        return Compiled(runner, self.info, self._optimized(blobs), lambda: self._carried(runner, key, blobs))

    def _carried(self, runner: Execution, key: CacheKey | None, blobs: Mapping[str, str]) -> CarriedProgram:
        """What a pickle of the function carries; its optimized graph as it was kept, else made again."""
        wanted = self.wanted
        kept = self._kept(blobs)
        return carry(
            wanted.name,
            key,
            self.info.reason if key is None else "",
            runner,
            [variable.type for variable in wanted.graph.inputs],
            (wanted.n_outputs, wanted.updated),
            self._arrays(),
            wanted.convert,
            kept or self._blobs(self.built or _rewritten(wanted)[0].freeze()),
            self.users.by_name,
        )

    def _kept(self, blobs: Mapping[str, str]) -> dict[str, bytes] | None:
        """What these blobs of an entry hold, the optimized graph among them; None if that is not all there."""
        read = {name: self.cache.read_blob(digest) for name, digest in blobs.items()}
        found = {name: content for name, content in read.items() if content is not None}
        return found if OPTIMIZED in found and len(found) == len(blobs) else None

    def _optimized(self, blobs: Mapping[str, str]) -> Callable[[], FunctionGraph]:
        if self.built is not None:
            return self.built.unfreeze
        return lambda: (
            stored_graph(self.cache, blobs, self._arrays(), self.users.by_name) or _rewritten(self.wanted)[0]
        )


class _Graphs:
    """The optimized forms of graphs that Ops hold: in the cache, where it can describe them.

    `found` has [hits, misses] of the level "op", if there were any; `seconds_saved` is what rewriting would have cost.
    `used` are the digests of the keys of those that were found or kept. Where the cache is not trusted (`is_trusted`), all
    are rewritten, and what it has is replaced.
    """

    def __init__(self, cache: Cache, mode: Mode, is_trusted: bool = True) -> None:
        self.cache = cache
        self.mode = mode
        self._is_trusted = is_trusted
        self.tally = [0, 0]
        self.seconds_saved = 0.0
        self.used: list[bytes] = []
        # Found, and to be compared with what rewriting gives.
        self._doubted: dict[FrozenFunctionGraph, FrozenFunctionGraph] = {}

    @property
    def has_found(self) -> bool:
        """Whether the cache had any."""
        return self.tally[0] > 0

    @property
    def found(self) -> dict[str, list[int]]:
        return {"op": self.tally} if any(self.tally) else {}

    def find(self, graph: FrozenFunctionGraph) -> FrozenFunctionGraph | None:
        """The optimized form of `graph`, if the cache has it; never raises."""
        users = UsersOps()
        key = self._key(graph, users)
        found = None
        if key is not None and self._is_trusted:
            found = self.cache.find(
                key, lambda payload: _loaded_graph(payload, graph, users, self.cache.read_blob)
            )
        self.tally[not isinstance(found, Found)] += 1
        if key is None or not isinstance(found, Found):
            return None
        if self.cache.samples_hit():
            self._doubted[graph] = found.value
            return None
        self.seconds_saved += sum(found.seconds.values())
        self.used.append(key.digest)
        return found.value

    def keep(self, graph: FrozenFunctionGraph, optimized: FrozenFunctionGraph, seconds: float) -> None:
        """Keep `optimized` under the key of `graph`, if it has one and can be pickled."""
        users = UsersOps()
        key = self._key(graph, users)
        if key is None:
            return
        blobs: dict[str, bytes] = {}
        try:
            payload = dump_graph(optimized, (), users, blobs)
        except Exception as error:  # it is in memory, and the next process rewrites it anew
            _log().info("the optimized form of %s is not kept: %s", graph, error)
            return
        summary = f"inner graph: {len(graph.nodes)} nodes, {len(optimized.nodes)} after rewriting"
        artifact = Artifact(payload, blobs, {"rewrite": seconds}, summary)
        stored = self._doubted.pop(graph, optimized)
        if stored != optimized:
            content = dump_graph(stored, (), users, {})
            self.cache.correct(key, content, artifact, f"rewriting {graph} gives another graph")
        else:
            self.cache.store(key, artifact)
        self.used.append(key.digest)

    def _key(self, graph: FrozenFunctionGraph, users: UsersOps) -> CacheKey | None:
        try:
            # Which users' functions cannot be fused is known once a kernel was compiled.
            refused = tuple((n, s) for n, op in enumerate(users_ops(graph)) for s in refused_signatures(op))
            options = (self.mode.linker, *([refused] if refused else []))
            return op_key(graph, _describe_rewrites(self.mode.optimizer), options, users)
        except (Unfingerprintable, SourceError) as error:
            _log().debug("the optimized form of %s is not looked up: %s", graph, error)
            return None


def _loaded_graph(
    payload: bytes, graph: FrozenFunctionGraph, users: UsersOps, read_blob: ReadBlob
) -> FrozenFunctionGraph:
    """The optimized form of `graph`, whose users' Ops are `users`, that `payload` holds; raises TypeError if it holds
    anything else, and as loads does."""
    found = load_graph(payload, (), users.by_name, read_blob)
    if not isinstance(found, FrozenFunctionGraph) or len(graph.inputs) != len(found.inputs):
        raise TypeError(f"the stored form of {graph} is {type(found).__name__}, or that of another graph")
    before = [variable.type for variable in (*graph.inputs, *graph.outputs)]
    after = [variable.type for variable in (*found.inputs, *found.outputs)]
    if len(before) != len(after) or not all(map(_may_replace, before, after)):
        raise TypeError(f"the stored form of {graph} is that of another graph")
    return found


def _may_replace(before: Type, after: Type) -> bool:
    return before.is_super(after)


def _rewritten(wanted: Specification, graphs: _Graphs | None = None) -> tuple[FunctionGraph, RewriteReport]:
    from engine.rewriting import rewrite_graph

    fgraph = wanted.graph.unfreeze()
    return fgraph, rewrite_graph(fgraph, wanted.mode.optimizer, graphs)


def _interpreted(wanted: Specification) -> Compiled:
    fgraph, report = _rewritten(wanted)
    reason = "the numpy backend compiles nothing"
    info = CacheInfo(outcome="bypass", reason=reason, rewrites=report.total)
    interface = (wanted.n_outputs, wanted.updated, wanted.convert)
    runner = Interpreted(fgraph, *interface)
    return Compiled(runner, info, fgraph.clone, lambda: CarriedGraph(fgraph.freeze(), *interface, reason))


def _log() -> Logger:
    import logging  # 7 ms, which a warm start does not need

    return logging.getLogger("engine")
