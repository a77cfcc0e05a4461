"""The lookup of one function's optimized graph: found in the cache, or made by PyTensor and stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytensor.compile.maker import FunctionMaker

from cachegraph.cache import Artifact, Cache, Correction, Found, default_cache
from cachegraph.caching.outcome import CacheInfo
from cachegraph.errors import CacheMissError, SourceError, Unfingerprintable
from cachegraph.garbage import seldom_collected
from cachegraph.hit_modules import HIT_MODULES
from cachegraph.pytensor.backends import backend_of
from cachegraph.pytensor.describe.basis import CHANGED
from cachegraph.pytensor.describe.folding import recording_folded_ops
from cachegraph.pytensor.describe.key import GraphDescription, describe
from cachegraph.pytensor.describe.specification import Specification
from cachegraph.pytensor.errors import Changed, Unstorable, count_bypass, note_failure
from cachegraph.pytensor.making.outcome import Bypass
from cachegraph.pytensor.making.uncached import UncachedMaking
from cachegraph.pytensor.stored.large_constants import data_inputs, with_data
from cachegraph.pytensor.stored.stored_graph import StoredGraph, pack

if TYPE_CHECKING:
    from cachegraph.pytensor.stored.externals import Context


class Lookup:
    """One requested function: its graph found in the cache, or made by `uncached` and stored.

    `info` says how it came about. `is_rewritten` is True once PyTensor has made the graph. `graph` is its
    stored form, if there is one.
    """

    def __init__(self, wanted: Specification, mode: Any, name: str | None, uncached: UncachedMaking) -> None:
        self.wanted = wanted
        self.mode = mode
        self.name = name or "function"
        self.info = CacheInfo()
        self.is_rewritten = False
        self.graph: StoredGraph | None = None
        self._uncached = uncached
        self._refusal: BaseException | None = None
        self._description: GraphDescription | None = None
        self._made: StoredGraph | None = None
        self._data: list[Any] = []

    def find(self, accept_inplace: bool, large_constants: bool) -> None:
        """Find the function's graph, or make it and store it if possible.

        Raises what PyTensor raises, and CacheMissError if CACHEGRAPH_ON_MISS is "error"; nothing else.
        """
        begin = perf_counter()
        try:
            with seldom_collected():
                self._find(accept_inplace, large_constants)
        except CacheMissError:
            raise
        except Exception as error:
            if error is self._refusal and not self._data:
                raise
            self.is_rewritten = self.is_rewritten and not self._data
            note_failure("looking a function up", self.name, error)
            self._set_bypass(f"the adapter failed: {type(error).__name__}: {error}")
            self.do_without()
        finally:
            self.info.seconds["total"] = perf_counter() - begin

    @property
    def adopted(self) -> Specification:
        """The requested specification, with its data as further inputs."""
        return self.wanted._replace(inputs=[*self.wanted.inputs, *self._data])

    def do_without(self) -> None:
        """Have PyTensor make the graph, unless it already has."""
        if not self.is_rewritten:
            if self.graph is not None:
                self._set_bypass("the adapter failed")
            self.graph = None
            self._data = []
            with self._shown():
                self._by_pytensor(self._uncached.rewrite)
            self.is_rewritten = True

    def bypass(self, bypass: Bypass) -> None:
        """Have PyTensor make the graph, and count the reason."""
        self._set_bypass(bypass.reason)
        count_bypass(bypass.kind)
        self.do_without()

    def _set_bypass(self, reason: str) -> None:
        self.info.outcome, self.info.reason = "bypass", reason

    def _find(self, accept_inplace: bool, large_constants: bool) -> None:
        cache = default_cache()
        if cache.absent is not None:
            return self.bypass(Bypass(cache.absent.reason, cache.absent.detail))
        begin = perf_counter()
        wanted = self.wanted
        try:
            described = describe(wanted.inputs, wanted.outputs, self.mode, accept_inplace, large_constants)
        except (Unfingerprintable, SourceError) as error:
            return self._cannot_describe(cache, error)
        self._description = described
        self._data = data_inputs(described.constants, backend_of(self.mode.linker) is None)
        self.info.seconds["key"] = perf_counter() - begin
        self.info.key = described.key.hex
        try:
            found = cache.get_or_build(
                described.key, self._build_shown, self._load, partial(self._verify, accept_inplace)
            )
        except Changed as error:
            return self.bypass(Bypass(CHANGED, str(error)))
        except Unfingerprintable as error:
            return self.bypass(Bypass("unfingerprintable", str(error)))
        except Unstorable as error:
            return self.bypass(Bypass("unstorable", str(error)))
        self.graph = found.value
        self._report(found)

    def _report(self, found: Found[StoredGraph]) -> None:
        is_hit = found.outcome == "hit"
        self.info.outcome, self.info.reason = found.outcome, found.reason
        self.info.found["function"] = [int(is_hit), int(not is_hit)]
        self.info.seconds["load"] = found.load_seconds
        if is_hit:
            self.info.seconds_saved = sum(found.seconds.values()) - found.load_seconds
        else:
            self.info.seconds.update(found.seconds)

    def _cannot_describe(self, cache: Cache, error: Unfingerprintable | SourceError) -> None:
        if cache.settings.on_miss == "error":
            raise CacheMissError("function", "none", str(error))
        kind = "unfingerprintable" if isinstance(error, Unfingerprintable) else "source"
        self.bypass(Bypass(kind, str(error)))

    def _build_shown(self) -> Artifact:
        HIT_MODULES.note("cachegraph")
        with self._shown() as show:
            return self._build(show)

    def _shown(self) -> AbstractContextManager[Callable[[str], None]]:
        """Return the context in which a long rewriting is shown on a terminal."""
        from cachegraph.waiting_line import shown_if_long  # a function that is found needs no line

        return shown_if_long(f"PyTensor rewrites {self.name}")

    def _build(self, show: Callable[[str], None]) -> Artifact:
        """Rewrite, pack and link; raises what PyTensor raises, and Unstorable without a stored form."""
        context = self._context()
        begin = perf_counter()
        on_data = with_data(self.wanted, self._described, self._data) if self._data else None
        with recording_folded_ops() as folded:
            graph = self._by_pytensor(lambda: self._uncached.rewrite(on_data))
        self.is_rewritten = True
        self.info.rewrites = 1
        rewritten = perf_counter()
        stored = self._made = self._packed(graph, context)
        self._refuse_external_state(graph, folded)
        packed = perf_counter()
        show(f"PyTensor links {self.name}")
        self._by_pytensor(lambda: self._uncached.link(stored))
        seconds = {"rewrite": rewritten - begin, "link": perf_counter() - packed}
        summary = f"{self.name}: {self._described.nodes} nodes, {len(graph.apply_nodes)} after rewriting"
        return Artifact(stored.content, seconds=seconds, summary=summary)

    def _refuse_external_state(self, graph: Any, folded: Sequence[Any]) -> None:
        """Raise Unfingerprintable if `graph` depends on more than its key, Changed if the basis changed."""
        from cachegraph.pytensor.describe.purity import refuse_external_reads  # analysis: only for a miss

        described = self._described
        made_of = (*described.ops, *(node.op for node in graph.apply_nodes))
        refuse_external_reads(made_of, folded, described.rewriters)
        if changed := described.basis.changed():
            raise Changed(changed)

    def _packed(self, graph: Any, context: Context) -> StoredGraph:
        """Return the stored form of `graph`, after a trial of reading it back."""
        try:
            order = graph.toposort()
            content = pack(graph, order, context)
            inputs = [variable.clone() for variable in graph.inputs]
            stored = StoredGraph(self._described.key, content, inputs, lambda: context, self._described.basis)
            stored.load()
            stored.nodes = order
        except Exception as error:
            raise _unstorable(error) from error
        return stored

    def _load(self, payload: bytes) -> StoredGraph:
        if self._made is not None:
            return self._made
        described, results = self._described, self.wanted.results
        inputs = self.adopted.graph_inputs()
        graph = StoredGraph(described.key, payload, inputs, self._context, described.basis)
        if len(graph.sources) != len(results):
            raise ValueError(f"the stored graph has {len(graph.sources)} results, not {len(results)}")
        return graph

    def _verify(self, accept_inplace: bool, found: Found[StoredGraph]) -> Correction[StoredGraph] | None:
        """Rewrite a copy of the graph; return a correction if the stored one differs."""
        begin = perf_counter()
        copied = with_data(self.wanted, self._described, self._data)
        graph = _rewritten(copied, self.mode, accept_inplace)
        seconds = {"rewrite": perf_counter() - begin}
        made = self._packed(graph, self._context())
        differs = _difference(found.value, made)
        if differs is None:
            return None
        return Correction(differs, Artifact(made.content, seconds=seconds), self._load(made.content))

    def _context(self) -> Context:
        from cachegraph.pytensor.stored.externals import Context  # few graphs that are found are read

        described = self._described
        return Context(self.wanted.names(), described.classes, described.ops, described.basis.arrays)

    def _by_pytensor(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except BaseException as error:
            self._refusal = error
            raise

    @property
    def _described(self) -> GraphDescription:
        assert self._description is not None
        return self._description


def _unstorable(error: Exception) -> Unstorable:
    return error if isinstance(error, Unstorable) else Unstorable(f"{type(error).__name__}: {error}")


def _rewritten(copied: Specification, mode: Any, accept_inplace: bool) -> Any:
    """Return the optimized graph that PyTensor makes of a specification, whose own graph this overwrites."""
    graph, updates = FunctionMaker.create_fgraph(copied.inputs, copied.outputs, accept_inplace)
    FunctionMaker.prepare_fgraph(copied.inputs, copied.outputs, updates, graph, mode, None)
    return graph


def _difference(stored: StoredGraph, made: StoredGraph) -> str | None:
    """Return the first difference of two stored graphs, or None; raises what loading them raises."""
    first, second = stored.load(), made.load()
    if first.freeze() == second.freeze():
        return None
    nodes = zip(first.toposort(), second.toposort(), strict=False)
    for number, (a, b) in enumerate(nodes):
        if a.op != b.op:
            return f"node {number} is {a.op}, not {b.op}"
    counts = len(first.apply_nodes), len(second.apply_nodes)
    return (
        f"{counts[0]} nodes, not {counts[1]}" if counts[0] != counts[1] else "another input, constant or type"
    )
