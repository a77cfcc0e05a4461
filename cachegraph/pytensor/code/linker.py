"""PyTensor's numba linker, with the code of what it links in the store.

Whether a function's code can be in the store at all is an entry of its own (level "numba"): nothing, or the reason why not.
It is written when the graph is first given to numba, and read before it is again.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import copy
from functools import partial
from typing import Any

from numba.core.dispatcher import Dispatcher
from pytensor.link.numba.linker import NumbaLinker

from cachegraph.cache import Artifact, Found, default_cache
from cachegraph.fingerprint.encoding import encode
from cachegraph.key import CacheKey
from cachegraph.pytensor.code.op_code import kept_op_code
from cachegraph.pytensor.code.stored_function import stored_function
from cachegraph.pytensor.describe.basis import Basis

UNKEYED = "without a key"
"""The reason why code is not stored of which PyTensor itself says that it cannot be: it calls Python, most often."""


class StoredLinker(NumbaLinker):
    """Links a graph to code that is found in the store by `description` (code.py).

    Where its code is expected there, numba is given nothing before it is missed. Otherwise the graph is turned into functions
    at once, with the errors and warnings that this gives.
    """

    description: bytes
    basis: Basis
    expects: bool

    @classmethod
    def like(cls, linker: NumbaLinker, description: bytes, basis: Basis) -> StoredLinker:
        """Return a linker that does what `linker` does."""
        made: StoredLinker = copy.copy(linker)
        made.__class__ = cls
        made.description, made.basis, made.expects = description, basis, expects_code(description)
        return made

    def fgraph_convert(self, fgraph: Any, **kwargs: Any) -> Any:
        """What `jit_compile` takes: the converted graph, or how it is converted."""
        return (
            partial(self._converted, fgraph, **kwargs) if self.expects else self._converted(fgraph, **kwargs)
        )

    def jit_compile(self, fn: Any) -> Any:
        """A dispatcher whose code is in the store, or will be; PyTensor's own where it cannot be."""
        if self.expects:
            linked = partial(self._linked, fn)
            return stored_function(self.description, linked, self.basis)
        dispatcher = super().jit_compile(fn)
        if not isinstance(dispatcher, Dispatcher):
            # numba is made to compile nothing: there is nothing to keep.
            return dispatcher
        is_keyed = fn[1] is not None
        _note(self.description, is_keyed)
        return stored_function(self.description, lambda: dispatcher, self.basis) if is_keyed else dispatcher

    def _linked(self, convert: Any) -> Any:
        return super().jit_compile(convert())

    def _converted(self, fgraph: Any, **kwargs: Any) -> Any:
        with kept_op_code():
            return super().fgraph_convert(fgraph, **kwargs)


def expects_code(description: bytes) -> bool:
    """Return whether the code of a function is, or will be, in the store; what cannot be is counted as a bypass."""
    cache = default_cache()
    found = cache.find(_key(description), lambda payload: payload == b"")
    if isinstance(found, Found) and not found.value:
        cache.note_bypass("numba", UNKEYED)
    return isinstance(found, Found) and found.value


def _note(description: bytes, is_keyed: bool) -> None:
    reason = "" if is_keyed else UNKEYED
    summary = f"how a graph is linked: {'its code is kept' if is_keyed else 'its code cannot be kept'}"
    default_cache().store(
        _key(description), Artifact(reason.encode(), seconds={"link": 0.0}, summary=summary)
    )


def _key(description: bytes) -> CacheKey:
    return CacheKey.build("numba", {"scheme": encode(("pytensor linking", 1)), "linked": description})
