"""The linker of the mode ENGINE: the adapter (cachegraph.pytensor) keeps its programs in the store."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from cachegraph.cache import Found, default_cache
from cachegraph.caching.records import parts
from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.key import CacheKey
from cachegraph.pytensor.errors import note_failure
from cachegraph.pytensor.stored.stored_graph import StoredGraph
from engine.compiling.surroundings import describe_rewrites, program_key
from engine.pytensor.linker import EngineLinker
from engine.pytensor.program import StagedProgram, data_places
from engine.pytensor.steps import MODE
from engine.pytensor.stored_program import NotReferable, StoredProgram, pack_program


class CachedEngineLinker(EngineLinker):
    """The engine's linker as the adapter uses it: the program of an optimized graph is found, or kept."""

    backend = "engine"

    def stored_code(self, graph: StoredGraph) -> StoredProgram | None:
        """Return the program of `graph` from the store, or None if it has none that loads."""
        cache = default_cache()
        key = _key(graph)
        if key is None or cache.settings.mode == "verify":  # linking verifies what the program would find
            return None
        with parts("function"):
            found = cache.find(key, lambda content: StoredProgram(content, graph, cache.read_blob))
        return found.value if isinstance(found, Found) else None

    def keeping(self, graph: StoredGraph) -> KeepingEngineLinker:
        """Return a linker that does the same, and stores the program of `graph`."""
        made: Any = copy.copy(self)
        made.__class__ = KeepingEngineLinker
        made.graph = graph
        return made


class KeepingEngineLinker(CachedEngineLinker):
    """The engine's linker for one graph, whose program it stores."""

    graph: StoredGraph

    def fgraph_convert(
        self, fgraph: Any, order: Any, input_storage: Sequence[Any], *cells: Any, **options: Any
    ) -> StagedProgram:
        nodes, data = self.graph.nodes, data_places(input_storage)
        if set(nodes) != fgraph.apply_nodes:
            return StagedProgram(fgraph, order, data)
        begin = perf_counter()
        program = StagedProgram(fgraph, nodes, data)
        try:
            self._keep(program, fgraph, nodes, begin)
        except Exception as error:  # the program works
            note_failure("storing the program of a function", "it", error)
        return program

    def _keep(self, program: StagedProgram, fgraph: Any, nodes: Sequence[Any], begin: float) -> None:
        key = _key(self.graph)
        if key is None or self.graph.basis.changed():
            return
        try:
            artifact = pack_program(program, fgraph, nodes)
        except NotReferable:  # a bypass, which the engine has counted
            return
        default_cache().store(key, artifact._replace(seconds={"link": perf_counter() - begin}))


def _key(graph: StoredGraph) -> CacheKey | None:
    """Return the key of the program of `graph`; None if no key describes what makes it."""
    try:
        return program_key(graph.description, describe_rewrites(MODE.optimizer), (MODE.linker,))
    except (Unfingerprintable, SourceError):
        return None
