"""One function: its optimized graph found in the cache, or made by PyTensor and kept there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from cachegraph.cache import Artifact, Cache, Correction, Found, default_cache
from cachegraph.caching.outcome import CacheInfo
from cachegraph.errors import CacheMissError, SourceError, Unfingerprintable
from cachegraph.pytensor.describe.basis import CHANGED
from cachegraph.pytensor.describe.key import Description, describe
from cachegraph.pytensor.describe.purity import noting_folded, refuse_reading
from cachegraph.pytensor.describe.specification import Specification
from cachegraph.pytensor.errors import Changed, Unstorable, count_bypass, note_failure
from cachegraph.pytensor.making.bypassing import Bypass
from cachegraph.pytensor.stored.externals import Context
from cachegraph.pytensor.stored.large_constants import data_inputs, with_data
from cachegraph.pytensor.stored.optimized import pack
from cachegraph.pytensor.stored.stored_graph import StoredGraph


class Making(Protocol):
    """PyTensor's own way from a specification to a function, in its two steps."""

    def rewrite(self, wanted: Specification | None = None) -> Any:
        """Make the optimized graph from scratch, of `wanted` if it is given, and return it."""

    def link(self, graph: StoredGraph) -> None:
        """Link the graph that `rewrite` made, to code that is kept as that of `graph`, its stored form."""


class Lookup:
    """One function that is to be made: found in the cache, or made by `making` and kept there.

    `info` says how it came about. `is_rewritten` tells whether PyTensor made its graph. `graph` is its stored form, if it
    has one.
    """

    def __init__(self, wanted: Specification, mode: Any, name: str | None, making: Making) -> None:
        self.wanted = wanted
        self.mode = mode
        self.name = name or "function"
        self.info = CacheInfo()
        self.is_rewritten = False
        self.graph: StoredGraph | None = None
        self._making = making
        self._refusal: BaseException | None = None
        self._description: Description | None = None
        self._made: StoredGraph | None = None
        self._data: list[Any] = []

    def find(self, accept_inplace: bool, large_constants: bool) -> None:
        """Find the function's graph, or make it, and keep it if that can be.

        Raises what PyTensor raises, and CacheMissError where CACHEGRAPH_ON_MISS is "error"; nothing else.
        """
        begin = perf_counter()
        try:
            self._find(accept_inplace, large_constants)
        except CacheMissError:
            raise
        except Exception as error:
            if error is self._refusal and not self._data:
                raise
            self.is_rewritten = self.is_rewritten and not self._data
            note_failure("looking a function up", self.name, error)
            self.info.outcome, self.info.reason = (
                "bypass",
                f"the adapter failed: {type(error).__name__}: {error}",
            )
            self.do_without()
        finally:
            self.info.seconds["total"] = perf_counter() - begin

    @property
    def adopted(self) -> Specification:
        """What is wanted, with its data as inputs."""
        return replace(self.wanted, inputs=[*self.wanted.inputs, *self._data])

    def do_without(self) -> None:
        """Have PyTensor make the graph, unless it has."""
        if not self.is_rewritten:
            if self.graph is not None:
                self.info.outcome, self.info.reason = "bypass", "the adapter failed"
            self.graph = None
            self._data = []
            self._by_pytensor(self._making.rewrite)
            self.is_rewritten = True

    def bypass(self, bypass: Bypass) -> None:
        """Have PyTensor make the graph, for a reason that is counted."""
        self.info.outcome, self.info.reason = "bypass", bypass.reason
        count_bypass(bypass.kind)
        self.do_without()

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
        self._data = data_inputs(described.constants)
        self.info.seconds["key"] = perf_counter() - begin
        self.info.key = described.key.hex
        try:
            found = cache.get_or_build(
                described.key, self._build, self._load, partial(self._verify, accept_inplace)
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

    def _build(self) -> Artifact:
        """Rewrite, pack and link; raises what PyTensor raises, and Unstorable for a graph that has no stored form."""
        context = self._context()
        begin = perf_counter()
        on_data = with_data(self.wanted, self._described.constants, self._data) if self._data else None
        with noting_folded() as folded:
            graph = self._by_pytensor(lambda: self._making.rewrite(on_data))
        self.is_rewritten = True
        self.info.rewrites = 1
        rewritten = perf_counter()
        stored = self._made = self._packed(graph, context)
        self._refuse_unkeyed(graph, folded)
        packed = perf_counter()
        self._by_pytensor(lambda: self._making.link(stored))
        seconds = {"rewrite": rewritten - begin, "link": perf_counter() - packed}
        summary = f"{self.name}: {self._described.nodes} nodes, {len(graph.apply_nodes)} after rewriting"
        return Artifact(stored.content, seconds=seconds, summary=summary)

    def _refuse_unkeyed(self, graph: Any, folded: Sequence[Any]) -> None:
        """Refuse to keep `graph` if it depends on more than its key says: raises Unfingerprintable, and Changed."""
        described = self._described
        made_of = (*described.ops, *(node.op for node in graph.apply_nodes))
        refuse_reading(made_of, folded, described.rewriters)
        if changed := described.basis.changed():
            raise Changed(changed)

    def _packed(self, graph: Any, context: Context) -> StoredGraph:
        """The stored form of `graph`, which has been read back."""
        try:
            content = pack(graph, context)
            inputs = [variable.clone() for variable in graph.inputs]
            stored = StoredGraph(self._described.key, content, inputs, lambda: context, self._described.basis)
            stored.load()
        except Exception as error:
            raise _unstorable(error) from error
        return stored

    def _load(self, payload: bytes) -> StoredGraph:
        if self._made is not None:
            return self._made
        described, results = self._described, self.wanted.results
        inputs = self.adopted.graph_inputs()
        graph = StoredGraph(described.key, payload, inputs, self._context, described.basis)
        if len(graph.places) != len(results):
            raise ValueError(f"the stored graph has {len(graph.places)} results, not {len(results)}")
        return graph

    def _verify(self, accept_inplace: bool, found: Found[StoredGraph]) -> Correction[StoredGraph] | None:
        """Rewrite a copy of the graph, and compare what is stored with what comes of it."""
        from cachegraph.pytensor.making.verification import (  # only the mode verify needs it
            difference,
            rewritten_copy,
        )

        begin = perf_counter()
        copied = with_data(self.wanted, self._described.constants, self._data)
        graph = rewritten_copy(copied, self.mode, accept_inplace)
        seconds = {"rewrite": perf_counter() - begin}
        context = self._context()
        made = self._packed(graph, context)
        differs = difference(found.value, made)
        if differs is None:
            return None
        return Correction(differs, Artifact(made.content, seconds=seconds), self._load(made.content))

    def _context(self) -> Context:
        described = self._described
        return Context(self.wanted.names(), described.classes, described.ops, described.basis.arrays)

    def _by_pytensor(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except BaseException as error:
            self._refusal = error
            raise

    @property
    def _described(self) -> Description:
        assert self._description is not None
        return self._description


def _unstorable(error: Exception) -> Unstorable:
    return error if isinstance(error, Unstorable) else Unstorable(f"{type(error).__name__}: {error}")
