"""The lookup of inner graphs, those that Ops hold, under keys of their own before PyTensor rewrites them.

PyTensor rewrites them one by one while it rewrites the function around them (`rewrite_inner_graph`); two
functions that hold the same Op share the entry. Entries of the level "op":

    content := format(1 byte) uint(number of frozen graphs) bytes(frozen)*

Frozen graphs are as in graph_section.py. The last is the result; the others are those that its Ops hold.

Version history
    1  first
    2  constants refer to arrays of the graph in hand
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from pytensor.configdefaults import config
from pytensor.link.numba.linker import NumbaLinker

from cachegraph.cache import Artifact, Found, default_cache
from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.fingerprint.primitives import Reader, pack_uint, prefixed
from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.pytensor.describe.folding import recording_folded_ops
from cachegraph.pytensor.describe.key import GraphDescription, describe_inner
from cachegraph.pytensor.errors import Changed, note_failure
from cachegraph.pytensor.stored.externals import Context
from cachegraph.pytensor.stored.graph_section import inner_graphs, named_by, pack_inner_graphs, unpack_frozen

FORMAT = 2


def pack_inner(graph: Any, context: Context) -> bytes:
    """Return the frozen `graph` in its stored form; raises as stored_graph.pack does."""
    external = context.external()
    held = inner_graphs([node.op for node in graph.toposort()], external)
    packed = pack_inner_graphs([*held, graph], external)
    return b"".join((bytes((FORMAT,)), pack_uint(len(packed)), *map(prefixed, packed)))


def unpack_inner(content: bytes, context: Context) -> Any:
    """Return the canonical frozen graph that `content` holds; raises as stored_graph.unpack does."""
    reader = Reader(content, "reading an optimized inner graph")
    if (version := reader.byte()) != FORMAT:
        raise reader.error(f"format {FORMAT}", f"format {version}")
    external = context.external()
    graph = None
    with config.change_flags(warn_float64="ignore", traceback__limit=0):  # see StoredGraph.load
        for _ in range(reader.uint()):
            graph = unpack_frozen(reader.bytes(), external)
            external += named_by(graph)
    reader.end()
    return graph


def find_or_rewrite(rewrite: Any, linker: Any, op: Any, node: Any, inner: Any, *, mode: Any) -> None:
    """Have `inner`, the thawed graph of `op`, freeze to `rewrite`'s result, found in the cache or made."""
    lookup = _InnerLookup(op)
    if type(linker) is NumbaLinker and lookup.finds(node, mode):
        inner.freeze = lambda: lookup.found  # PyTensor takes its result over by calling this
        return
    begin = perf_counter()
    with recording_folded_ops() as folded:
        rewrite(linker, op, node, inner, mode=mode)
    lookup.keep(inner, folded, perf_counter() - begin)


class _InnerLookup:
    """The lookup of one graph that an Op holds; after any failure PyTensor rewrites the graph."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.found: Any = None
        self._key: CacheKey | None = None
        self._context = Context()
        self._described: GraphDescription

    def finds(self, node: Any, mode: Any) -> bool:
        """Return True if the result of rewriting the graph for `node` is in the cache; never raises."""
        try:
            self._find(node, mode)
        except (Unfingerprintable, SourceError):
            self._key = None
        except Exception as error:
            self._key = None
            note_failure("looking an inner graph up", type(self.op).__qualname__, error)
        return self.found is not None

    def _find(self, node: Any, mode: Any) -> None:
        cache = default_cache()
        if cache.absent is not None:
            return
        described = self._described = describe_inner(self.op, node, mode)
        self._key, self._context = described.key, Context(ops=described.ops, arrays=described.basis.arrays)
        found = cache.find(self._key, self._load)
        if isinstance(found, Found) and not cache.samples_hit():
            self.found = found.value

    def _load(self, payload: bytes) -> Any:
        """Return the graph in `payload`; raises TypeError if it cannot replace the Op's."""
        graph, replaced = unpack_inner(payload, self._context), self.op.fgraph
        same_inputs = [v.type for v in graph.inputs] == [v.type for v in replaced.inputs]
        if not same_inputs or len(graph.outputs) != len(replaced.outputs):
            raise TypeError(f"the stored graph of {self.op} is that of another")
        if not all(map(_may_replace, replaced.outputs, graph.outputs)):
            raise TypeError(f"the stored graph of {self.op} gives other types")
        return graph

    def keep(self, inner: Any, folded: Sequence[Any], seconds: float) -> None:
        """Store the result `inner`, if it has a key and a stored form; never raises."""
        if self._key is None:
            return
        from cachegraph.pytensor.describe.purity import refuse_external_reads  # analysis: only for a miss

        try:
            graph = inner.freeze()
            content = pack_inner(graph, self._context)
            unpack_inner(content, self._context)
            refuse_external_reads(
                (self.op, *(node.op for node in graph.toposort())), folded, self._described.rewriters
            )
            if changed := self._described.basis.changed():
                raise Changed(changed)
            summary = f"inner graph: {len(graph.toposort())} nodes after rewriting"
            default_cache().store(self._key, Artifact(content, seconds={"rewrite": seconds}, summary=summary))
        except Exception as error:  # the function around it is compiled nevertheless
            logger("cachegraph").info("the graph of %s is not stored: %s", self.op, error)


def _may_replace(replaced: Any, found: Any) -> bool:
    return bool(replaced.type.is_super(found.type))
