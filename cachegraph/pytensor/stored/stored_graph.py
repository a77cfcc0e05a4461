"""The optimized graph of a function as it was stored, read when somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from pytensor.configdefaults import config

from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import strong_digest
from cachegraph.key import CacheKey
from cachegraph.pytensor.describe.basis import Basis
from cachegraph.pytensor.stored.externals import Context
from cachegraph.pytensor.stored.optimized import COMPUTED, FIRST_INPUT, read_places, unpack


class StoredGraph:
    """`content` as optimized.py writes it, found under `key`, on the variables `inputs`.

    `places` says where its results are stored. `context` gives what it names when it is read. `basis` tells whether what
    it was looked up by is as it was then.
    """

    def __init__(
        self,
        key: CacheKey,
        content: bytes,
        inputs: Sequence[Any],
        context: Callable[[], Context],
        basis: Basis,
    ) -> None:
        self.key = key
        self.content = content
        self.inputs = list(inputs)
        self.places = read_places(content)
        self.context = context
        self.basis = basis

    @cached_property
    def description(self) -> bytes:
        """What the code of this graph is found by: how the graph was asked for, and the graph, to the last bit.

        Of two processes that rewrite one graph differently, each finds the code of what it has.
        """
        return encode((self.key.confirmation, strong_digest(self.content)))

    def load(self) -> Any:
        """The graph; raises InvalidEncoding, and what loading pickles raises."""
        # Whoever built it was warned; and where a variable is read is not where it was made, as errors would say.
        with config.change_flags(warn_float64="ignore", traceback__limit=0):
            return unpack(self.content, self.context(), self.inputs)

    def outline(self) -> Any:
        """What a new Function asks of its graph: the inputs, and which of the results are computed by a node."""
        roots = [None] * len(self.inputs)
        for place in self.places:
            is_fresh = place < FIRST_INPUT
            roots.append(
                (_COMPUTED if place == COMPUTED else None) if is_fresh else roots[place - FIRST_INPUT]
            )
        results = [SimpleNamespace(owner=owner) for owner in roots[len(self.inputs) :]]
        return SimpleNamespace(inputs=self.inputs, outputs=results, apply_nodes=())


_COMPUTED: Any = SimpleNamespace()
"""Stands for the node that computes a result."""
