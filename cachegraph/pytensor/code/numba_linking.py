"""PyTensor's numba linker, with the code of what it links kept in the store.

Whether the code of a function can be stored at all is an entry of its own (level "numba"): empty, or the
reason why not. It is written when PyTensor first turns the graph into numba functions, and read before it
does so again.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from numba.core.dispatcher import Dispatcher
from pytensor.link.numba.linker import NumbaLinker

from cachegraph.cache import Artifact, Found, default_cache
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey
from cachegraph.pytensor.code.compilations import with_compilations
from cachegraph.pytensor.code.op_code import storing_op_code as storing_op_code
from cachegraph.pytensor.code.stored_function import StoredFunction, stored_function
from cachegraph.pytensor.describe.basis import Basis
from cachegraph.pytensor.stored.stored_graph import StoredGraph

UNKEYED = "without a key"
"""The reason if PyTensor itself says that code cannot be cached, most often because it calls Python."""


class StoredLinker(NumbaLinker):
    """A numba linker whose code is looked up in the store by `description`, and kept there.

    If the store should have the code, the graph is turned into numba functions only after a miss. Otherwise
    this happens at once, with the errors and warnings that it gives.
    """

    description: bytes
    basis: Basis
    expects: bool

    @classmethod
    def like(cls, linker: NumbaLinker, description: bytes, basis: Basis) -> StoredLinker:
        """Return a linker that does what `linker` does, with its code under `description`."""
        made: StoredLinker = copy.copy(linker)
        made.__class__ = cls
        made.description, made.basis, made.expects = description, basis, expects_code(description)
        return made

    def fgraph_convert(self, fgraph: Any, **kwargs: Any) -> Any:
        """Return the converted graph, or a function that converts it; `jit_compile` takes either."""
        return (
            partial(self._converted, fgraph, **kwargs) if self.expects else self._converted(fgraph, **kwargs)
        )

    def jit_compile(self, fn: Any) -> Any:
        """Return a dispatcher whose code is or will be in the store, if possible; else PyTensor's own."""
        if self.expects:
            linked = partial(self._linked, fn)
            return stored_function(self.description, linked, self.basis)
        dispatcher = super().jit_compile(fn)
        if not isinstance(dispatcher, Dispatcher):
            # NUMBA_DISABLE_JIT: there is no code to keep.
            return dispatcher
        is_keyed = fn[1] is not None
        _record_linking(self.description, is_keyed)
        if not is_keyed:
            return with_compilations(dispatcher)
        return stored_function(self.description, lambda: dispatcher, self.basis)

    def _linked(self, convert: Any) -> Any:
        return super().jit_compile(convert())

    def _converted(self, fgraph: Any, **kwargs: Any) -> Any:
        with storing_op_code():
            return super().fgraph_convert(fgraph, **kwargs)


def expects_code(description: bytes) -> bool:
    """Return True if the store has, or will have, the code of this function; count a bypass if it cannot."""
    cache = default_cache()
    found = cache.find(_key(description), lambda payload: payload == b"")
    if isinstance(found, Found) and not found.value:
        cache.note_bypass("numba", UNKEYED)
    return isinstance(found, Found) and found.value


def stored_code(graph: StoredGraph, link: Callable[[], Any]) -> StoredFunction | None:
    """Return a dispatcher of the stored code of `graph`, or None if it cannot be stored.

    `link` links the graph; it is called at most once, if the code is not there.
    """
    is_kept = expects_code(graph.description)
    return stored_function(graph.description, link, graph.basis) if is_kept else None


def _record_linking(description: bytes, is_keyed: bool) -> None:
    reason = "" if is_keyed else UNKEYED
    summary = f"how a graph is linked: {'its code is kept' if is_keyed else 'its code cannot be kept'}"
    default_cache().store(
        _key(description), Artifact(reason.encode(), seconds={"link": 0.0}, summary=summary)
    )


def _key(description: bytes) -> CacheKey:
    return CacheKey.build("numba", {"scheme": encode(("pytensor linking", 1)), "linked": description})
