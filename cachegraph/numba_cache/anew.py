"""Compiling without what numba itself keeps in files.

A function that is decorated with `cache=True` is loaded by numba from a file that knows the time of its own source, and
nothing of what it calls in other files (numba #8851): its old code would be linked into an entry whose key describes the
new one.
"""

# mypy: disable-error-code="method-assign"
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock


@contextmanager
def compiled_anew() -> Iterator[None]:
    """Have numba compile all that is needed meanwhile, in whatever thread, and load nothing of it from its own files.

    What the process has loaded before is not compiled again.
    """
    with global_compiler_lock:
        load = caching.Cache.load_overload
        caching.Cache.load_overload = _nothing
        try:
            yield
        finally:
            caching.Cache.load_overload = load


def _nothing(cache: Any, sig: Any, target_context: Any) -> None:
    """What a cache without a file for `sig` gives numba."""
