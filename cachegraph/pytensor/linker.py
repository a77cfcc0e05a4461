"""PyTensor's numba linker, with the code of what it links in the store."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import copy
from functools import partial
from typing import Any

from pytensor.link.numba.linker import NumbaLinker

from cachegraph.pytensor.code import stored_function


class StoredLinker(NumbaLinker):
    """Links a graph to code that is found in the store by `description` (code.py).

    `expects_code`: whether the code of the graph should be there, so that numba is given nothing before it is missed.
    Otherwise the graph is turned into functions at once, with the errors and warnings that this gives.
    """

    description: bytes
    expects_code: bool

    @classmethod
    def like(cls, linker: NumbaLinker, description: bytes, expects_code: bool) -> StoredLinker:
        """Return a linker that does what `linker` does."""
        made: StoredLinker = copy.copy(linker)
        made.__class__ = cls
        made.description, made.expects_code = description, expects_code
        return made

    def fgraph_convert(self, fgraph: Any, **kwargs: Any) -> Any:
        """What `jit_compile` takes: the converted graph, or how it is converted."""
        convert = partial(super().fgraph_convert, fgraph, **kwargs)
        return convert if self.expects_code else convert()

    def jit_compile(self, fn: Any) -> Any:
        """A dispatcher whose code is in the store, or will be."""
        if self.expects_code:
            return stored_function(self.description, lambda: NumbaLinker.jit_compile(self, fn()))
        dispatcher = super().jit_compile(fn)
        return stored_function(self.description, lambda: dispatcher)
