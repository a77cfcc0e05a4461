"""`compile_function`: from a request to a function, found in the cache or built. Finding one imports no
compiler."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cachegraph.cache import Artifact, Cache, Correction, Found, default_cache
from cachegraph.errors import CacheMissError, SourceError, Unfingerprintable
from cachegraph.garbage import seldom_collected
from cachegraph.key import CacheKey
from engine.compiling.compiled import CacheInfo, Compiled, FunctionReference
from engine.compiling.graph_encoding import UserOps
from engine.compiling.key import request_key
from engine.compiling.load import CompilationTally, LoadContext, load_program
from engine.compiling.request import FunctionRequest
from engine.errors import UndescribedOpError
from engine.graph.fgraph import FunctionGraph
from engine.graph.represented import RepresentedType
from engine.runtime.execution import Execution

if TYPE_CHECKING:
    from engine.compiling.build import Build
    from engine.compiling.pickled_function import PickledProgram


def compile_function(request: FunctionRequest) -> Compiled:
    """Return the function that `request` asks for, from the cache if it has it, else built and stored.

    Raises LoweringError for an Op without a kernel, and CacheMissError where CACHEGRAPH_ON_MISS is "error".
    """
    if request.mode.linker == "numpy":
        from engine.compiling.build import interpret

        return interpret(request)
    with seldom_collected():
        return Compilation(request).run()


class Compilation:
    """One function on its way from a request to something that runs: its key, its build if it is a
    miss, its counts."""

    def __init__(self, request: FunctionRequest) -> None:
        self._request = request
        self._cache = default_cache()
        self._user_ops = UserOps()
        self._tally = CompilationTally()
        self._key: CacheKey | None = None
        self._blobs: Mapping[str, str] = {}
        self._build: Build | None = None
        self._info = CacheInfo()

    def run(self) -> Compiled:
        """Return the function. Without a key, which is a bypass, it is built and not stored."""
        begin = perf_counter()
        try:
            key = request_key(self._request, self._user_ops)
        except Unfingerprintable as error:
            return self._bypass(str(error), "unfingerprintable")
        except SourceError as error:
            # No key describes what this process imported, so kernels and inner graphs bypass the cache
            # as well.
            self._cache = Cache(self._cache.settings._replace(mode="off"))
            return self._bypass(str(error), "source")
        self._info.seconds["key"] = perf_counter() - begin
        try:
            return self._find_or_build(key)
        except UndescribedOpError as error:
            return self._bypass(str(error), "unfingerprintable")

    def _find_or_build(self, key: CacheKey) -> Compiled:
        begin = perf_counter()
        found = self._cache.get_or_build(key, self._build_artifact, self._load, self._verify)
        info = self._info
        info.outcome, info.reason, info.key = found.outcome, found.reason, key.hex
        if self._cache.absent is not None:
            info.outcome = "bypass"
        info.seconds["load"] = found.load_seconds
        info.seconds["total"] = perf_counter() - begin + info.seconds["key"]
        seconds_saved = sum(found.seconds.values()) - found.load_seconds
        self._counts.count("function", found.outcome == "hit", seconds_saved)
        self._key, self._blobs = key, found.blobs
        return self._compiled(found.value)

    def _bypass(self, reason: str, kind: str) -> Compiled:
        """Build the function without storing it; `kind` is what `reason` is counted under."""
        if self._cache.settings.on_miss == "error":
            raise CacheMissError("function", "none", reason)
        self._cache.note_bypass("function", kind, reason)
        begin = perf_counter()
        self._user_ops = UserOps(is_open=True)
        self._info = CacheInfo(outcome="bypass", reason=reason)
        build = self._new_build()
        build.run()
        self._build = build
        runner = build.link()
        self._info.seconds["total"] = perf_counter() - begin
        return self._compiled(runner)

    def _build_artifact(self) -> Artifact:
        build = self._new_build()
        artifact = build.run()
        self._build = build
        return artifact

    def _new_build(self) -> Build:
        from engine.compiling.build import Build

        return Build(self._request, self._cache, self._user_ops)

    def _load(self, payload: bytes) -> Execution:
        """Return the program that was just built, or else the one that `payload` stores, bound to the
        request's data."""
        if self._build is not None:
            return self._build.link()
        request = self._request
        context = LoadContext(self._cache, request.name, self._user_ops.by_name, self._tally)
        return load_program(context, payload, request.interface, request.data)

    def _verify(self, found: Found[Execution]) -> Correction[Execution] | None:
        """Build the function again and compare it with `found`; building compares its kernels."""
        from engine.compiling.verification import difference  # only the mode verify needs it

        build = self._new_build()
        artifact = build.run()
        runner = build.link()
        stored = self._stored_graph(found.blobs)
        graphs = stored.freeze() if stored is not None else None, build.optimized
        differs = difference(graphs, (found.value, runner), self._request.interface.types)
        return Correction(differs, artifact, runner) if differs else None

    @property
    def _counts(self) -> CompilationTally:
        return self._tally if self._build is None else self._build.tally

    def _compiled(self, runner: Execution) -> Compiled:
        info, counts = self._info, self._counts
        info.found, info.seconds_saved, info.compilations = (
            counts.found,
            counts.seconds_saved,
            counts.compiled,
        )
        if self._build is not None:
            info.rewrites = self._build.rewrites
            info.seconds.update(self._build.seconds)
        return Compiled(runner, info, self._optimized, lambda: self._pickled(runner), self._reference)

    def _reference(self) -> FunctionReference | None:
        key, interface = self._key, self._request.interface
        if key is None or self._user_ops.by_name or interface.updated or self._has_represented():
            return None
        convert: Any = interface.convert
        named = zip(convert.names, convert.types, strict=True)
        inputs = tuple((name, type.dtype, tuple(type.shape)) for name, type in named)
        data = tuple(self._request.data)
        return FunctionReference(key.digest, key.confirmation, inputs, interface.n_outputs, data)

    def _has_represented(self) -> bool:
        """Return True if a value of an input or output is no array."""
        outputs = [output.type for output in self._request.graph.outputs]
        return any(isinstance(type, RepresentedType) for type in (*self._request.interface.types, *outputs))

    def _optimized(self) -> FunctionGraph:
        """Return the rewritten graph: as built, as stored, or rewritten now."""
        if self._build is not None:
            return self._build.optimized.unfreeze()
        stored = self._stored_graph(self._blobs)
        if stored is not None:
            return stored
        from engine.compiling.build import rewritten

        return rewritten(self._request)[0]

    def _stored_graph(self, blobs: Mapping[str, str]) -> FunctionGraph | None:
        from engine.compiling.inner_graphs import load_optimized  # few look at the graph of a hit

        return load_optimized(self._cache, blobs, self._request.data, self._user_ops.by_name)

    def _pickled(self, runner: Execution) -> PickledProgram:
        from engine.compiling.pickled_function import pickled_program  # few functions are pickled

        bypass = self._info.reason if self._key is None else ""
        blobs = self._read_blobs() or self._optimized_blobs()
        return pickled_program(self._request, self._key, bypass, runner, blobs, self._user_ops.by_name)

    def _read_blobs(self) -> dict[str, bytes] | None:
        """Return the contents of the entry's blobs, or None unless all can be read, the optimized graph
        among them."""
        from engine.compiling.inner_graphs import OPTIMIZED

        read = {name: self._cache.read_blob(digest) for name, digest in self._blobs.items()}
        found = {name: content for name, content in read.items() if content is not None}
        return found if OPTIMIZED in found and len(found) == len(self._blobs) else None

    def _optimized_blobs(self) -> dict[str, bytes]:
        from engine.compiling.build import optimized_blobs, rewritten

        optimized = rewritten(self._request)[0].freeze() if self._build is None else self._build.optimized
        return optimized_blobs(self._request, optimized, self._user_ops)
