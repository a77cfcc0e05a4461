"""`RewriteDatabaseQuery`: a choice of rewrites by name and tag, which imports none of them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cachegraph.fingerprint.registry import register_record
from engine.graph.props import ByProps


class RewriteDatabaseQuery(ByProps):
    """A choice of rewrites: one of `include`, all of `require`, none of `exclude` among name and tags.

    Of a sequence of rewrites it takes those at positions below `position_cutoff`.
    """

    __props__ = ("include", "require", "exclude", "position_cutoff")

    def __init__(
        self,
        include: Iterable[str],
        require: Iterable[str] = (),
        exclude: Iterable[str] = (),
        position_cutoff: float = math.inf,
    ) -> None:
        self.include = frozenset(include)
        self.require = frozenset(require)
        self.exclude = frozenset(exclude)
        self.position_cutoff = position_cutoff

    def __repr__(self) -> str:
        tags = (f"{name}={sorted(getattr(self, name))}" for name in ("include", "require", "exclude"))
        cutoff = () if self.position_cutoff == math.inf else (f"position_cutoff={self.position_cutoff}",)
        return f"RewriteDatabaseQuery({', '.join((*tags, *cutoff))})"

    def including(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to include."""
        return RewriteDatabaseQuery(
            self.include | set(tags), self.require, self.exclude, self.position_cutoff
        )

    def requiring(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to require."""
        return RewriteDatabaseQuery(
            self.include, self.require | set(tags), self.exclude, self.position_cutoff
        )

    def excluding(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to exclude."""
        return RewriteDatabaseQuery(
            self.include, self.require, self.exclude | set(tags), self.position_cutoff
        )

    def selects(self, tags: frozenset[str]) -> bool:
        """Return True if a rewrite with these names and tags is chosen."""
        return bool(self.include & tags) and self.require <= tags and not self.exclude & tags


register_record(RewriteDatabaseQuery, RewriteDatabaseQuery.__props__)
