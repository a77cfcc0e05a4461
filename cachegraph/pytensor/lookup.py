"""The optimized graph of one function: found in the cache, or made by PyTensor and kept there."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cachegraph.cache import Artifact, Cache, default_cache
from cachegraph.cache_info import CacheInfo
from cachegraph.counters import PROCESS
from cachegraph.errors import CacheMissError, SourceError, Unfingerprintable
from cachegraph.pytensor.bypassing import Bypass
from cachegraph.pytensor.errors import Unstorable
from cachegraph.pytensor.key import Description, describe
from cachegraph.pytensor.optimized import pack, unpack
from cachegraph.pytensor.specification import Specification

if TYPE_CHECKING:
    from logging import Logger


class Lookup:
    """One function that is to be made; `rewrite` makes its optimized graph by PyTensor's own path, from scratch.

    `info` says how the graph came about. `rewritten` tells whether `rewrite` was called, and made it.
    """

    def __init__(
        self, wanted: Specification, mode: Any, name: str | None, rewrite: Callable[[], Any]
    ) -> None:
        self.wanted = wanted
        self.mode = mode
        self.name = name or "function"
        self.info = CacheInfo()
        self.rewritten = False
        self._rewrite = rewrite
        self._refusal: BaseException | None = None
        self._description: Description | None = None

    def find(self, accept_inplace: bool, large_constants: bool) -> Any:
        """The graph that the cache has, or None after `rewrite` has made one, which is kept if it can be.

        Raises what `rewrite` raises, and CacheMissError where CACHEGRAPH_ON_MISS is "error"; nothing else.
        """
        begin = perf_counter()
        try:
            return self._find(accept_inplace, large_constants)
        except CacheMissError:
            raise
        except Exception as error:
            if error is self._refusal:
                raise
            self.note_failure("looking a function up", error)
        finally:
            self.info.seconds["total"] = perf_counter() - begin
        return self.do_without()

    def do_without(self) -> None:
        """Have PyTensor make the graph, unless it has."""
        if not self.rewritten:
            self._by_pytensor()

    def bypass(self, bypass: Bypass) -> None:
        """Have PyTensor make the graph, for a reason that is counted."""
        self.info.outcome, self.info.reason = "bypass", bypass.reason
        self._count(bypass.kind)
        self.do_without()

    def note_failure(self, doing: str, error: Exception) -> None:
        """Log and count a failure of the adapter itself: PyTensor's own path is taken."""
        _log().warning(
            "%s failed, so PyTensor makes %s as if there were no cache", doing, self.name, exc_info=error
        )
        self.info.outcome, self.info.reason = "bypass", f"{doing} failed: {type(error).__name__}: {error}"
        self._count("adapter-failure")

    def _find(self, accept_inplace: bool, large_constants: bool) -> Any:
        cache = default_cache()
        if cache.settings.mode == "off":
            return self.bypass(Bypass("disabled", "CACHEGRAPH_MODE is off"))
        begin = perf_counter()
        wanted = self.wanted
        try:
            described = describe(wanted.inputs, wanted.outputs, self.mode, accept_inplace, large_constants)
        except (Unfingerprintable, SourceError) as error:
            return self._cannot_describe(cache, error)
        self._description = described
        self.info.seconds["key"] = perf_counter() - begin
        self.info.key = described.key.hex
        try:
            found = cache.get_or_build(described.key, self._build, self._load)
        except Unstorable as error:
            return self.bypass(Bypass("unstorable", str(error)))
        self.info.outcome, self.info.reason = found.outcome, found.reason
        self.info.found["function"] = [int(found.outcome == "hit"), int(found.outcome != "hit")]
        self.info.seconds.update({"load": found.load_seconds, **({} if found.value else found.seconds)})
        if found.outcome == "hit":
            self.info.seconds_saved = sum(found.seconds.values()) - found.load_seconds
        return found.value

    def _cannot_describe(self, cache: Cache, error: Unfingerprintable | SourceError) -> None:
        if cache.settings.on_miss == "error":
            raise CacheMissError("function", "none", str(error))
        kind = "unfingerprintable" if isinstance(error, Unfingerprintable) else "source"
        self.bypass(Bypass(kind, str(error)))

    def _build(self) -> Artifact:
        """Rewrite and pack; raises what PyTensor raises, and Unstorable for a graph that has no stored form."""
        numbered = self.wanted.numbered_names()
        begin = perf_counter()
        graph = self._by_pytensor()
        seconds = {"rewrite": perf_counter() - begin}
        self.info.rewrites = 1
        try:
            content = pack(graph, self._described.classes, numbered)
        except Exception as error:
            raise _unstorable(error) from error
        summary = f"{self.name}: {self._described.nodes} nodes, {len(graph.apply_nodes)} after rewriting"
        return Artifact(content, seconds=seconds, summary=summary)

    def _load(self, payload: bytes) -> Any:
        """The stored graph; None if PyTensor made it just now: then it is only tried whether it can be loaded."""
        wanted = self.wanted
        if self.rewritten:
            try:
                unpack(payload, self._described.classes, [v.clone() for v in wanted.graph_inputs()], None)
            except Exception as error:
                raise _unstorable(error) from error
            return None
        graph = unpack(payload, self._described.classes, wanted.graph_inputs(), wanted.names())
        if len(graph.outputs) != len(wanted.results):
            raise ValueError(f"the stored graph has {len(graph.outputs)} outputs, not {len(wanted.results)}")
        graph.update_mapping = wanted.update_mapping
        return graph

    def _by_pytensor(self) -> Any:
        try:
            graph = self._rewrite()
        except BaseException as error:
            self._refusal = error
            raise
        self.rewritten = True
        return graph

    @property
    def _described(self) -> Description:
        assert self._description is not None
        return self._description

    def _count(self, kind: str) -> None:
        try:
            default_cache().note_bypass("function", kind)
        except Exception:  # the settings are what failed
            PROCESS.bypass(kind)


def _unstorable(error: Exception) -> Unstorable:
    return error if isinstance(error, Unstorable) else Unstorable(f"{type(error).__name__}: {error}")


def _log() -> Logger:
    import logging

    return logging.getLogger("cachegraph")
