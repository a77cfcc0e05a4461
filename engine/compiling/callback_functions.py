"""Functions that callbacks call: found in the cache by keys of their own, whatever function calls them, or built.

Their graphs are those that Ops hold, which are rewritten with the Ops: here they are compiled as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from cachegraph.cache import Artifact, Cache, Correction, Found
from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.key import CacheKey
from engine.compiling.graph_encoding import UsersOps
from engine.compiling.key import all_constants, callee_key
from engine.compiling.mode import Mode
from engine.compiling.programs import Compilation, compile_program, load_callee
from engine.errors import UndescribedOpError
from engine.graph.fgraph import FrozenFunctionGraph
from engine.runtime.execution import Callee
from engine.runtime.linking import KernelTally


class Callees:
    """Call it with a graph: the function that computes it, for a program that is being made for the function `name`, and
    has the users' Ops `users`.

    Raises as compile_function does, and UndescribedOpError for a graph with an Op that is not among `users`.
    """

    def __init__(self, cache: Cache, mode: Mode, tally: KernelTally, name: str, users: UsersOps) -> None:
        self._cache = cache
        self._mode = mode
        self._tally = tally
        self._name = name
        self._users = users

    def __call__(self, graph: FrozenFunctionGraph) -> Callee:
        users = UsersOps()
        try:
            key = callee_key(graph, (self._mode.linker,), users)
            # What is kept has the names of its own key: those here may hold for this function alone.
            work = _Work(self._of(users), graph, key)
            found = self._cache.get_or_build(key, work.build, work.load, work.verify)
        except (Unfingerprintable, SourceError):
            return self._without_key(graph)
        except UndescribedOpError:
            if not self._users.is_open:
                raise
            return self._without_key(graph)
        self._users.include(users)
        self._tally.count_function(found.outcome == "hit", sum(found.seconds.values()) - found.load_seconds)
        return found.value

    def _of(self, users: UsersOps) -> Callees:
        return Callees(self._cache, self._mode, self._tally, self._name, users)

    def _without_key(self, graph: FrozenFunctionGraph) -> Callee:
        """What no key describes is named by what it became: the program that calls it is in no cache either."""
        built = self.compile(graph)
        key = CacheKey.build("function", {"program": built.payload})
        with self.holding(built.blobs):
            return self.load(key, built.payload, True, built.callees)

    def compile(self, graph: FrozenFunctionGraph) -> Compilation:
        """As compile_program does."""
        constants = tuple(all_constants(graph))
        n_outputs, name_of = len(graph.outputs), self._users.name_of
        return compile_program(self._cache, graph, n_outputs, (), (), constants, self._tally, self, name_of)

    def holding(self, blobs: Mapping[str, bytes]) -> AbstractContextManager[None]:
        """As Cache.holding does."""
        return self._cache.holding(blobs)

    def load(self, key: CacheKey, payload: bytes, is_linked: bool, callees: Mapping[str, Callee]) -> Callee:
        """As load_callee does; the kernels are linked already if `is_linked`."""
        tally = None if is_linked else self._tally
        return load_callee(self._cache, key, payload, self._name, tally, callees, self._users.by_name)


class _Work:
    """The compilation of one function that a callback calls."""

    def __init__(self, callees: Callees, graph: FrozenFunctionGraph, key: CacheKey) -> None:
        self._callees = callees
        self._graph = graph
        self._key = key
        self._is_built = False
        self._built: Mapping[str, Callee] = {}

    def build(self) -> Artifact:
        built = self._callees.compile(self._graph)
        self._built = built.callees
        self._is_built = True
        summary = f"called by a callback: {len(self._graph.nodes)} nodes"
        return Artifact(built.payload, built.blobs, {"lower": built.seconds}, summary, built.needed)

    def verify(self, found: Found[Callee]) -> Correction[Callee] | None:
        """Build the function anew and compare; its kernels are compared while it is built."""
        from engine.compiling.verification import difference  # nothing but the mode verify needs it

        again = _Work(self._callees, self._graph, self._key)
        artifact = again.build()
        with self._callees.holding(artifact.blobs):
            callee = again.load(artifact.payload)
        programs = found.value.execution, callee.execution
        differs = difference((None, None), programs, [v.type for v in self._graph.inputs])
        return Correction(differs, artifact, callee) if differs else None

    def load(self, payload: bytes) -> Callee:
        return self._callees.load(self._key, payload, self._is_built, self._built)
