"""`RewriteDatabaseQuery`: a choice of rewrites by name and tag, which imports none of them."""

from __future__ import annotations

from collections.abc import Iterable

from cachegraph.fingerprint.registry import register_record
from engine.graph.props import ByProps


class RewriteDatabaseQuery(ByProps):
    """A choice of rewrites: one of `include`, all of `require`, none of `exclude` among name and tags."""

    __props__ = ("include", "require", "exclude")

    def __init__(
        self, include: Iterable[str], require: Iterable[str] = (), exclude: Iterable[str] = ()
    ) -> None:
        self.include = frozenset(include)
        self.require = frozenset(require)
        self.exclude = frozenset(exclude)

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name}={sorted(tags)}" for name, tags in self.props_dict().items())
        return f"RewriteDatabaseQuery({chosen})"

    def including(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to include."""
        return RewriteDatabaseQuery(self.include | set(tags), self.require, self.exclude)

    def requiring(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to require."""
        return RewriteDatabaseQuery(self.include, self.require | set(tags), self.exclude)

    def excluding(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to exclude."""
        return RewriteDatabaseQuery(self.include, self.require, self.exclude | set(tags))

    def selects(self, tags: frozenset[str]) -> bool:
        """Return True if a rewrite with these names and tags is chosen."""
        return bool(self.include & tags) and self.require <= tags and not self.exclude & tags


register_record(RewriteDatabaseQuery, RewriteDatabaseQuery.__props__)
