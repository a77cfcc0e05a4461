"""Databases of rewrites by name and tags, from which a query chooses.

The description of the chosen rewrites (names and positions only) is the part of a cache key for the
rewriting.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.rewriting.rewriters import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    NodeRewriter,
    SequentialGraphRewriter,
)

Description = tuple["str | float | Description", ...]


R = TypeVar("R")


class _Registration(Struct, Generic[R], frozen=True):
    name: str
    rewriter: R
    tags: frozenset[str]
    position: float


class RewriteDatabase(Generic[R]):
    """Rewrites by name and tags, in the order of their positions (equal positions: as registered)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._entries: dict[str, _Registration[R]] = {}
        self._own: frozenset[str] | None = None

    def register(self, name: str, rewriter: R, *tags: str, position: float = 1.0) -> None:
        """Add `rewriter`, found by `name` and `tags`; refuse (ValueError) a name that is taken."""
        if name in self._entries:
            raise ValueError(
                f"Registering {name} in {self.name}: there is a rewrite of that name; choose another"
            )
        self._entries[name] = _Registration(name, rewriter, frozenset((name, *tags)), float(position))

    def seal(self) -> None:
        """Mark all present rewrites, here and in inner databases, as part of the engine's source."""
        self._own = frozenset(self._entries)
        for inner in self._inner():
            inner.seal()

    def foreign(self) -> list[str]:
        """Return the names registered since `seal`, here and in inner databases: keys lack their code."""
        names = [name for name in self._entries if self._own is not None and name not in self._own]
        return names + [name for inner in self._inner() for name in inner.foreign()]

    def _inner(self) -> list[RewriteDatabase[NodeRewriter]]:
        rewriters = [entry.rewriter for entry in self._entries.values()]
        return [rewriter for rewriter in rewriters if isinstance(rewriter, RewriteDatabase)]

    def selected(self, query: RewriteDatabaseQuery) -> list[_Registration[R]]:
        """Return the registrations that `query` chooses, in running order.

        A database need not have a tag to include: a rewrite in it may.
        """
        found = [entry for entry in self._entries.values() if self._is_selected(entry, query)]
        return sorted(found, key=lambda entry: entry.position)

    def _is_selected(self, entry: _Registration[R], query: RewriteDatabaseQuery) -> bool:
        if query.selects(entry.tags):
            return True
        inner = entry.rewriter
        if not isinstance(inner, RewriteDatabase):
            return False
        return query.require <= entry.tags and not query.exclude & entry.tags and bool(inner.selected(query))

    def query(self, query: RewriteDatabaseQuery) -> GraphRewriter:
        """Return a rewriter that applies the rewrites chosen by `query`."""
        raise NotImplementedError(f"{type(self).__name__} must implement query()")

    def describe(self, query: RewriteDatabaseQuery) -> Description:
        """Return the rewrites chosen by `query`, in running order.

        A rewrite is described as (name, position), a database as (name, position, *its rewrites).
        """
        rows: list[Description] = []
        for entry in self.selected(query):
            inner = entry.rewriter.describe(query) if isinstance(entry.rewriter, RewriteDatabase) else ()
            rows.append((entry.name, entry.position, *inner))
        return tuple(rows)


class EquilibriumDB(RewriteDatabase[NodeRewriter]):
    """Rewrites of nodes that run together until none applies; on one node they are tried in order."""

    def query(self, query: RewriteDatabaseQuery) -> EquilibriumGraphRewriter:
        """Return a rewriter that applies the chosen rewrites until none applies."""
        return EquilibriumGraphRewriter([entry.rewriter for entry in self.selected(query)], name=self.name)


class SequenceDB(RewriteDatabase["GraphRewriter | RewriteDatabase[NodeRewriter]"]):
    """Rewrites of graphs, and databases of rewrites, that run one after the other."""

    def selected(
        self, query: RewriteDatabaseQuery
    ) -> list[_Registration[GraphRewriter | RewriteDatabase[NodeRewriter]]]:
        """Return the registrations that `query` chooses, in running order, up to its cutoff."""
        return [entry for entry in super().selected(query) if entry.position < query.position_cutoff]

    def query(self, query: RewriteDatabaseQuery) -> SequentialGraphRewriter:
        """Return a rewriter that runs the chosen rewrites in order."""
        found = [entry.rewriter for entry in self.selected(query)]
        chosen = [item.query(query) if isinstance(item, RewriteDatabase) else item for item in found]
        return SequentialGraphRewriter(*chosen, name=self.name)
