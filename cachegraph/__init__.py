"""A persistent, content-addressed compilation cache.

    Cache, default_cache, Found, Artifact     look up, build and store the entries of an application
    memoize                                   a function whose results are entries
    CacheKey, register_encoder                keys, and the canonical encodings of an application's own types
    counters                                  hits, misses and bypasses of this process
    CachegraphError and its subclasses        what is raised

docs/library.md shows their use. `cachegraph.fingerprint` has the encodings, `cachegraph.pytensor` the adapter
for PyTensor. Public names are imported from their modules on first use, so that `import cachegraph` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cachegraph.platforms import require_posix
from cachegraph.version import __version__ as __version__

if TYPE_CHECKING:
    from cachegraph.cache import Cache as Cache
    from cachegraph.cache import default_cache as default_cache
    from cachegraph.caching.counters import counters as counters
    from cachegraph.caching.outcome import Found as Found
    from cachegraph.errors import CachegraphError as CachegraphError
    from cachegraph.errors import CacheMissError as CacheMissError
    from cachegraph.errors import InvalidEncoding as InvalidEncoding
    from cachegraph.errors import SettingsError as SettingsError
    from cachegraph.errors import SourceError as SourceError
    from cachegraph.errors import StoreError as StoreError
    from cachegraph.errors import Unfingerprintable as Unfingerprintable
    from cachegraph.fingerprint.registry import register_encoder as register_encoder
    from cachegraph.key import CacheKey as CacheKey
    from cachegraph.memoizing import memoize as memoize
    from cachegraph.store.entry import Artifact as Artifact

require_posix()

__all__ = [
    "Artifact",
    "Cache",
    "CacheKey",
    "CacheMissError",
    "CachegraphError",
    "Found",
    "InvalidEncoding",
    "SettingsError",
    "SourceError",
    "StoreError",
    "Unfingerprintable",
    "counters",
    "default_cache",
    "memoize",
    "register_encoder",
]

_MODULE_OF = {
    **dict.fromkeys(["Cache", "default_cache"], "cachegraph.cache"),
    **dict.fromkeys([name for name in __all__ if name.endswith(("Error", "Encoding"))], "cachegraph.errors"),
    "Artifact": "cachegraph.store.entry",
    "CacheKey": "cachegraph.key",
    "Found": "cachegraph.caching.outcome",
    "Unfingerprintable": "cachegraph.errors",
    "counters": "cachegraph.caching.counters",
    "memoize": "cachegraph.memoizing",
    "register_encoder": "cachegraph.fingerprint.registry",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'cachegraph' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
