"""The code that numba compiles for its dispatchers, in the store: one entry of the level "numba"
per signature."""

from cachegraph.numba_cache.overloads import StoredOverloads, keep_overloads

__all__ = ["StoredOverloads", "keep_overloads"]
