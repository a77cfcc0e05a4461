"""`RewriteDatabaseQuery`: which rewrites run. It names them, and needs none of them to be imported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class RewriteDatabaseQuery:
    """Chooses the rewrites that have one of `include`, all of `require` and none of `exclude` as name or tag."""

    include: frozenset[str]
    require: frozenset[str] = frozenset()
    exclude: frozenset[str] = field(default_factory=frozenset)

    def __init__(
        self, include: Iterable[str], require: Iterable[str] = (), exclude: Iterable[str] = ()
    ) -> None:
        for name, tags in (("include", include), ("require", require), ("exclude", exclude)):
            object.__setattr__(self, name, frozenset(tags))

    def including(self, *tags: str) -> RewriteDatabaseQuery:
        """The query that includes `tags` too."""
        return replace(self, include=self.include | set(tags))

    def requiring(self, *tags: str) -> RewriteDatabaseQuery:
        """The query that requires `tags` too."""
        return replace(self, require=self.require | set(tags))

    def excluding(self, *tags: str) -> RewriteDatabaseQuery:
        """The query that excludes `tags` too."""
        return replace(self, exclude=self.exclude | set(tags))

    def selects(self, tags: frozenset[str]) -> bool:
        """Whether a rewrite with these names and tags is chosen."""
        return bool(self.include & tags) and self.require <= tags and not self.exclude & tags
