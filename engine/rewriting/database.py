"""Databases of rewrites by name and tags, from which a query chooses.

The description of the chosen rewrites (names and positions only) is the part of a cache key for the
rewriting.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, Literal, TextIO, TypeVar

from msgspec import Struct

from engine.graph.rewrite_query import RewriteDatabaseQuery
from engine.rewriting.equilibrium import EquilibriumGraphRewriter
from engine.rewriting.rewriters import GraphRewriter, NodeRewriter, SequentialGraphRewriter
from engine.rewriting.walking import Direction, SequentialNodeRewriter, WalkingGraphRewriter

Description = tuple["str | float | Description", ...]
Position = float | Literal["last"]

R = TypeVar("R")


class _Registration(Struct, Generic[R], frozen=True):
    name: str
    rewriter: R
    tags: frozenset[str]
    position: float


class RewriteDatabase(Generic[R]):
    """Rewrites by name and tags, in the order of their positions (equal positions: as registered)."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._entries: dict[str, _Registration[R]] = {}
        self._own: frozenset[str] | None = None

    def register(
        self,
        name: str,
        rewriter: R,
        *tags: str,
        position: Position = 1.0,
        use_db_name_as_tag: bool = True,
        overwrite_existing: bool = False,
    ) -> None:
        """Add `rewriter`, found by `name`, `tags` and, if `use_db_name_as_tag`, the database's name.

        It may take the place of one with this name if `overwrite_existing`. Position "last" is behind all
        others. Refuse (ValueError) a name that is taken by a rewrite or a tag, and a tag that is the name
        of a rewrite, and (TypeError) a `rewriter` that is none.
        """
        if not isinstance(rewriter, RewriteDatabase | GraphRewriter | NodeRewriter):
            raise TypeError(f"Registering {name} in {self.name}: {rewriter!r} is not a valid rewrite")
        if not (position == "last" or isinstance(position, int | float)):
            raise TypeError(f"Registering {name} in {self.name}: `position` must be a number, not {position}")
        if name in self and not (overwrite_existing and name in self._entries):
            raise ValueError(
                f"Registering {name} in {self.name}: there is a rewrite of that name or tag; choose another. "
                f"The tag {name!r} is taken"
            )
        if taken := [tag for tag in tags if tag in self._entries]:
            raise ValueError(
                f"Registering {name} in {self.name}: The tag {taken[0]!r} is the name of a rewrite"
            )
        if not rewriter.name:
            rewriter.name = name
        own = (self.name,) if use_db_name_as_tag and self.name else ()
        behind = max([entry.position for entry in self._entries.values()], default=-1.0) + 1
        place = behind if position == "last" else float(position)
        self._entries[name] = _Registration(name, rewriter, frozenset((name, *tags, *own)), place)

    def __contains__(self, name: str) -> bool:
        """Return True if there is a rewrite with this name or tag."""
        return any(name in entry.tags - {self.name} for entry in self._entries.values())

    def __getitem__(self, name: str) -> R:
        """Return the rewrite with this name or tag; refuse (KeyError) none, and (ValueError) several."""
        if name in self._entries:
            return self._entries[name].rewriter
        found = [entry.rewriter for entry in self._entries.values() if name in entry.tags]
        if not found:
            raise KeyError(f"Looking for {name!r} in {self.name}: nothing is registered for it")
        if len(found) > 1:
            raise ValueError(f"Looking for {name!r} in {self.name}: {len(found)} rewrites have that tag")
        return found[0]

    @property
    def __position__(self) -> dict[str, float]:
        """The positions of the rewrites by their names."""
        return {name: entry.position for name, entry in self._entries.items()}

    def seal(self) -> None:
        """Mark all present rewrites, here and in inner databases, as part of the engine's source."""
        self._own = frozenset(self._entries)
        for inner in self._inner():
            inner.seal()

    def foreign(self) -> list[str]:
        """Return the names registered since `seal`, here and in inner databases: keys lack their code."""
        names = [name for name in self._entries if self._own is not None and name not in self._own]
        return names + [name for inner in self._inner() for name in inner.foreign()]

    def _inner(self) -> list[RewriteDatabase[Any]]:
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

    def rewriters(self, *query: RewriteDatabaseQuery | str) -> list[Any]:
        """Return the rewrites that a query chooses, in running order; a database as its own `query`."""
        chosen = as_query(*query)
        found = [entry.rewriter for entry in self.selected(chosen)]
        return [item.query(chosen) if isinstance(item, RewriteDatabase) else item for item in found]

    def query(self, *query: RewriteDatabaseQuery | str) -> Any:
        """Return the rewrites that a query chooses; subclasses return one rewriter that applies them.

        The query is a RewriteDatabaseQuery, or tags as strings: "+include", "&require", "-exclude".
        """
        return self.rewriters(*query)

    def describe(self, query: RewriteDatabaseQuery) -> Description:
        """Return the rewrites chosen by `query`, in running order.

        A rewrite is described as (name, position), a database as (name, position, *its rewrites).
        """
        rows: list[Description] = []
        for entry in self.selected(query):
            inner = entry.rewriter.describe(query) if isinstance(entry.rewriter, RewriteDatabase) else ()
            rows.append((entry.name, entry.position, *inner))
        return tuple(rows)

    def print_summary(self, stream: TextIO = sys.stdout) -> None:
        """Print the names of the rewrites, and their positions and tags."""
        print(f"{type(self).__name__} {self.name} (id {id(self)})", file=stream)
        print("  names", set(self._entries), file=stream)
        for entry in sorted(self._entries.values(), key=lambda entry: entry.position):
            print(f"  {entry.position:8g} {entry.name}: {', '.join(sorted(entry.tags))}", file=stream)


def as_query(*query: RewriteDatabaseQuery | str) -> RewriteDatabaseQuery:
    """Return a query, or the one that tags such as "+include", "&require" and "-exclude" mean.

    Refuse (TypeError) more than one query, and (ValueError) a tag that begins with something else.
    """
    tags = [tag for tag in query if isinstance(tag, str)]
    if len(tags) < len(query):
        if len(query) > 1:
            raise TypeError("Querying a database of rewrites: give one query, or tags")
        return query[0]  # type: ignore[return-value]
    if wrong := [tag for tag in tags if tag[:1] not in ("+", "&", "-")]:
        raise ValueError(f"Querying a database of rewrites: tag {wrong[0]!r} does not begin with +, & or -")
    include, require, exclude = ([tag[1:] for tag in tags if tag[0] == sign] for sign in "+&-")
    return RewriteDatabaseQuery(include, require, exclude)


class EquilibriumDB(RewriteDatabase[Any]):
    """Rewrites of nodes that run together until none applies; on one node they are tried in order.

    Rewrites of graphs run before each round; those with `final_rewriter` or `cleanup` when no other applies.
    """

    def __init__(self, name: str = "", ignore_newtrees: bool = False) -> None:
        super().__init__(name)
        self.ignore_newtrees = ignore_newtrees
        self._after: set[str] = set()

    def register(
        self,
        name: str,
        rewriter: Any,
        *tags: str,
        final_rewriter: bool = False,
        cleanup: bool = False,
        **how: Any,
    ) -> None:
        """Add `rewriter`, as `RewriteDatabase.register` does; refuse (ValueError) one of both kinds."""
        if final_rewriter and cleanup:
            raise ValueError(f"Registering {name}: `final_rewriter` and `cleanup` are both given; choose one")
        super().register(name, rewriter, *tags, **how)
        if final_rewriter or cleanup:
            self._after.add(name)

    def query(self, *query: RewriteDatabaseQuery | str) -> EquilibriumGraphRewriter:
        """Return a rewriter that applies the chosen rewrites until none applies."""
        entries = self.selected(as_query(*query))
        return EquilibriumGraphRewriter(
            [entry.rewriter for entry in entries if entry.name not in self._after],
            name=self.name,
            ignore_newtrees=self.ignore_newtrees,
            final_rewriters=[entry.rewriter for entry in entries if entry.name in self._after],
        )


class SequenceDB(RewriteDatabase[Any]):
    """Rewrites of graphs, and databases of rewrites, that run one after the other.

    `failure_callback` is that of the SequentialGraphRewriter that a query gives.
    """

    def __init__(
        self,
        name: str = "",
        failure_callback: Callable[[Exception, Any, GraphRewriter], object] | None = None,
    ) -> None:
        super().__init__(name)
        self.failure_callback = failure_callback

    def register(self, name: str, rewriter: Any, *tags: str, position: Position = "last", **how: Any) -> None:
        """Add `rewriter`, as `RewriteDatabase.register` does; by default as the last."""
        super().register(name, rewriter, *tags, position=position, **how)

    def selected(self, query: RewriteDatabaseQuery) -> list[_Registration[Any]]:
        """Return the registrations that `query` chooses, in running order, up to its cutoff."""
        return [entry for entry in super().selected(query) if entry.position < query.position_cutoff]

    def query(self, *query: RewriteDatabaseQuery | str) -> Any:
        """Return a rewriter that runs the chosen rewrites in order."""
        return SequentialGraphRewriter(
            *self.rewriters(*query), name=self.name, failure_callback=self.failure_callback
        )


class LocalGroupDB(SequenceDB):
    """Rewrites of nodes that are one rewrite: on a node the first that applies wins.

    With `apply_all_rewrites` the others are tried on what it made.
    """

    def __init__(self, name: str = "", apply_all_rewrites: bool = False) -> None:
        super().__init__(name)
        self.apply_all_rewrites = apply_all_rewrites

    def query(self, *query: RewriteDatabaseQuery | str) -> SequentialNodeRewriter:
        """Return a rewriter of nodes that tries the chosen rewrites in order."""
        found = self.rewriters(*query)
        return SequentialNodeRewriter(*found, apply_all_rewrites=self.apply_all_rewrites, name=self.name)


class _Wrapper(RewriteDatabase[Any]):
    """A database with the rewrites of `db`; refuses (TypeError) what is no database."""

    def __init__(self, db: RewriteDatabase[Any]) -> None:
        if not isinstance(db, RewriteDatabase):
            raise TypeError(f"Making a {type(self).__name__}: `db` must be a RewriteDatabase, not {db!r}")
        super().__init__()
        self.db = db

    def selected(self, query: RewriteDatabaseQuery) -> list[_Registration[Any]]:
        return self.db.selected(query)

    def _inner(self) -> list[RewriteDatabase[Any]]:
        return [self.db]


class ProxyDB(_Wrapper):
    """A database at another position: one that is registered more than once in a SequenceDB."""

    def query(self, *query: RewriteDatabaseQuery | str) -> Any:
        """Return what the database returns."""
        return self.db.query(*query)


class TopoDB(_Wrapper):
    """A database of rewrites of nodes that run on one walk through the graph."""

    def __init__(
        self, db: RewriteDatabase[Any], order: Direction = "in_to_out", ignore_newtrees: bool = False
    ) -> None:
        super().__init__(db)
        self.order: Direction = order
        self.ignore_newtrees = ignore_newtrees

    def query(self, *query: RewriteDatabaseQuery | str) -> WalkingGraphRewriter:
        """Return a rewriter that walks through a graph once, with the chosen rewrites."""
        return WalkingGraphRewriter(self.db.query(*query), self.order, self.ignore_newtrees, name=self.name)
