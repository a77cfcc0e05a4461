"""Drawings of stored functions: the optimized graph of an entry, for people who have not its program.

A stored graph refers to the function's data and to users' Ops, which only its program has. In a drawing zeros
of the same type stand for data, and a name for a user's Op. The entry is somebody's: its graph is loaded with
the same checks as for a hit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

import numpy as np

from cachegraph.key import CacheKey
from engine.compiling.explanation import graph_difference
from engine.compiling.inner_graphs import OPTIMIZED, load_graph
from engine.graph.drawing.svg import to_html
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op

_LARGEST_DATA = 64 * 2**20  # bytes; zeros are made and hashed for all data of a graph
_DIGITS = 8
_DATA = "data "


def drawing(key: CacheKey, blobs: Mapping[str, str], read_blob: Callable[[str], bytes | None]) -> str | None:
    """Return the optimized graph of an entry as HTML; None if it is not the engine's, or keeps no graph.

    `blobs` are the digests of its blobs by name. Raises ValueError for a graph that cannot be read or holds
    too much data, and as loading a pickle does.
    """
    encoding = dict(key.parts).get("graph")
    if OPTIMIZED not in blobs or encoding is None:
        return None
    content = read_blob(blobs[OPTIMIZED])
    if content is None:
        raise ValueError("reading the optimized graph: it is missing, damaged, or not to be trusted")
    constants = graph_difference.read(encoding).constants
    data = list(_zeros(text.removeprefix(_DATA) for text in constants if text.startswith(_DATA)))
    graph = load_graph(content, data, _Names(), read_blob)
    if not isinstance(graph, FrozenFunctionGraph):
        raise ValueError(f"reading the optimized graph: it is a {type(graph).__name__}")
    return to_html(graph)


def _zeros(types: Iterator[str]) -> Iterator[np.ndarray]:
    """Yield zeros of each type, as explanation.py writes it: `float64 (2, 3)`."""
    left = _LARGEST_DATA
    for text in types:
        dtype, _, lengths = text.partition(" ")
        shape = tuple(int(length) for length in lengths.strip("()").split(",") if length.strip())
        left -= int(np.prod(shape, dtype=float)) * np.dtype(dtype).itemsize
        if left < 0:
            raise ValueError(f"drawing the optimized graph: its data have more than {_LARGEST_DATA} bytes")
        yield np.zeros(shape, dtype)


class _Names(Mapping[str, Op]):
    """Ops with every name: each stands for a user's Op."""

    def __getitem__(self, name: str) -> Op:
        return NamedStandIn(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> NoReturn:
        raise TypeError("listing the names of users' Ops: only those asked for exist")

    def __len__(self) -> NoReturn:
        raise TypeError("counting the names of users' Ops: only those asked for exist")


class NamedStandIn(Op):
    """A user's Op in a drawing: its name, the digest of its description."""

    __props__ = ("digest",)

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def __str__(self) -> str:
        return f"user Op {self.digest[:_DIGITS]}"
