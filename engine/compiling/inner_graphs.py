"""Optimized graphs in the store: those of inner graphs, each an entry of its own, and that of a
function, a blob.

A stored graph contains neither the function's data nor user Ops: it refers to them by number and by
name, and whoever loads it supplies them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachegraph import pickling
from cachegraph.cache import Artifact, Found
from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.pickling.large_arrays import ReadBlob
from engine.compiling.graph_encoding import UserOps
from engine.compiling.key import op_key
from engine.compiling.surroundings import describe_rewrites
from engine.graph.fgraph import FrozenFunctionGraph, FunctionGraph
from engine.graph.op import Op
from engine.graph.user_ops import find_user_ops, is_user_op
from engine.scalar.embedded import refused_signatures

if TYPE_CHECKING:
    from engine.compiling.load import Entries
    from engine.compiling.programs import BuildContext

OPTIMIZED = "optimized-graph"
"""The name of the blob that holds the optimized graph of a function, without its data."""

_PICKLED = ("engine.graph.fgraph", "engine.scalar", "engine.tensor", "engine.inner", "engine.random")
"""The modules of Ops, types and graphs: a stored graph may name only classes and functions of these."""


class InnerGraphStore:
    """The optimized forms of inner graphs, found in the cache or stored there under keys of their own.

    `used` are the digests of the keys of the graphs that were found or stored. Without `is_trusted`
    every graph is rewritten from scratch and replaces its entry.
    """

    def __init__(self, context: BuildContext, is_trusted: bool = True) -> None:
        self.used: list[bytes] = []
        self._context = context
        self._cache = context.cache
        self._is_trusted = is_trusted
        self._keys: dict[FrozenFunctionGraph, tuple[CacheKey | None, UserOps]] = {}
        self._to_verify: dict[FrozenFunctionGraph, FrozenFunctionGraph] = {}
        """Hits that are compared with what rewriting gives."""

    def find(self, graph: FrozenFunctionGraph) -> FrozenFunctionGraph | None:
        """Return the optimized form of `graph`, or None on a miss; never raises."""
        user_ops = UserOps()
        key = self._key(graph, user_ops)
        self._keys[graph] = key, user_ops
        found = None
        if key is not None and self._is_trusted:
            found = self._cache.find(
                key, lambda payload: load_inner_graph(payload, graph, user_ops, self._cache.read_blob)
            )
        is_hit = isinstance(found, Found)
        to_verify = is_hit and self._cache.samples_hit()
        seconds = sum(found.seconds.values()) if isinstance(found, Found) and not to_verify else 0.0
        self._context.tally.count("op", is_hit, seconds)
        if key is None or not isinstance(found, Found):
            return None
        if to_verify:
            self._to_verify[graph] = found.value
            return None
        self.used.append(key.digest)
        return found.value

    def keep(self, graph: FrozenFunctionGraph, optimized: FrozenFunctionGraph, seconds: float) -> None:
        """Store `optimized`, what `graph` became in `seconds`, if `graph` has a key and it can be pickled."""
        key, user_ops = self._keys[graph]
        if key is None:
            return
        blobs: dict[str, bytes] = {}
        try:
            payload = dump_graph(optimized, (), user_ops, blobs)
        except Exception as error:  # this process has it, and the next one rewrites the graph again
            logger("engine").info("the optimized form of %s is not stored: %s", graph, error)
            return
        summary = f"inner graph: {len(graph.nodes)} nodes, {len(optimized.nodes)} after rewriting"
        artifact = Artifact(payload, blobs, {"rewrite": seconds}, summary)
        stored = self._to_verify.pop(graph, optimized)
        if stored != optimized:
            content = dump_graph(stored, (), user_ops, {})
            self._cache.correct(key, content, artifact, f"rewriting {graph} gives another graph")
        else:
            self._cache.store(key, artifact)
        self.used.append(key.digest)

    def _key(self, graph: FrozenFunctionGraph, user_ops: UserOps) -> CacheKey | None:
        mode = self._context.mode
        try:
            # User functions that compiling a kernel has refused are not fused any more.
            refused = tuple(
                (n, s) for n, op in enumerate(find_user_ops(graph)) for s in refused_signatures(op)
            )
            options = (mode.linker, *([refused] if refused else []))
            return op_key(graph, describe_rewrites(mode.optimizer), options, user_ops)
        except (Unfingerprintable, SourceError) as error:
            logger("engine").debug("the optimized form of %s is not looked up: %s", graph, error)
            return None


def load_inner_graph(
    payload: bytes, graph: FrozenFunctionGraph, user_ops: UserOps, read_blob: ReadBlob
) -> FrozenFunctionGraph:
    """Return the optimized form of `graph` that `payload` holds; raises TypeError if it holds anything
    else, and as pickling.loads does."""
    found = load_graph(payload, (), user_ops.by_name, read_blob)
    if not isinstance(found, FrozenFunctionGraph) or len(graph.inputs) != len(found.inputs):
        raise TypeError(f"the stored form of {graph} is {type(found).__name__}, or that of another graph")
    before = [variable.type for variable in (*graph.inputs, *graph.outputs)]
    after = [variable.type for variable in (*found.inputs, *found.outputs)]
    if len(before) != len(after) or not all(
        old.is_super(new) for old, new in zip(before, after, strict=True)
    ):
        raise TypeError(f"the stored form of {graph} is that of another graph")
    return found


def dump_graph(
    graph: FrozenFunctionGraph, data: Sequence[Any], user_ops: UserOps, blobs: dict[str, bytes]
) -> bytes:
    """Return `graph` pickled, with references to its `data` and to its user Ops; other large arrays go
    into `blobs`.

    Raises UndescribedOpError for a user Op that is not among `user_ops`, and as pickling.dumps does.
    """

    def name_of(item: object) -> str | None:
        return user_ops.name_of(item) if isinstance(item, Op) and is_user_op(item) else None

    return pickling.dumps(graph, data, name_of=name_of, blobs=blobs)


def load_graph(
    content: bytes, data: Sequence[Any], ops: Mapping[str, Op], read_blob: ReadBlob
) -> FrozenFunctionGraph:
    """Return the graph that `dump_graph` wrote, on these data and user Ops; raises as pickling.loads does."""
    graph: FrozenFunctionGraph = pickling.loads(content, _PICKLED, data, at_hand=ops, read_blob=read_blob)
    return graph


def load_optimized(
    entries: Entries, blobs: Mapping[str, str], data: Sequence[Any], ops: Mapping[str, Op]
) -> FunctionGraph | None:
    """Return the optimized graph among the blobs of a function's entry, or None if it cannot be loaded."""
    content = entries.read_blob(blobs[OPTIMIZED]) if OPTIMIZED in blobs else None
    if content is None:
        return None
    try:
        return load_graph(content, data, ops, entries.read_blob).unfreeze()
    except Exception:  # the function runs without its graph
        logger("engine").warning("the stored graph %s cannot be loaded", blobs[OPTIMIZED], exc_info=True)
        return None
