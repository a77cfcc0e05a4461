"""What numba compiles for its dispatchers, kept in the store: entries of the level "numba", one for each signature."""

from cachegraph.numba_cache.overloads import StoredOverloads, keep_overloads

__all__ = ["StoredOverloads", "keep_overloads"]
