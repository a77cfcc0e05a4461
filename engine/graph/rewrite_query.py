"""`RewriteDatabaseQuery`: a choice of rewrites by name and tag, which imports none of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class RewriteDatabaseQuery:
    """A choice of rewrites: one of `include`, all of `require`, none of `exclude` among name and tags."""

    include: frozenset[str]
    require: frozenset[str] = frozenset()
    exclude: frozenset[str] = field(default_factory=frozenset)

    def __init__(
        self, include: Iterable[str], require: Iterable[str] = (), exclude: Iterable[str] = ()
    ) -> None:
        for name, tags in (("include", include), ("require", require), ("exclude", exclude)):
            object.__setattr__(self, name, frozenset(tags))

    def including(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to include."""
        return replace(self, include=self.include | set(tags))

    def requiring(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to require."""
        return replace(self, require=self.require | set(tags))

    def excluding(self, *tags: str) -> RewriteDatabaseQuery:
        """Return this query with more tags to exclude."""
        return replace(self, exclude=self.exclude | set(tags))

    def selects(self, tags: frozenset[str]) -> bool:
        """Return True if a rewrite with these names and tags is chosen."""
        return bool(self.include & tags) and self.require <= tags and not self.exclude & tags
