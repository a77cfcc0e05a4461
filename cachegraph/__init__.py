"""A persistent, content-addressed compilation cache.

Public names are imported from their modules on first use, so that `import cachegraph` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cachegraph.version import __version__ as __version__

if TYPE_CHECKING:
    from cachegraph.cache import Cache as Cache
    from cachegraph.cache import default_cache as default_cache
    from cachegraph.caching.counters import counters as counters
    from cachegraph.errors import CachegraphError as CachegraphError
    from cachegraph.errors import CacheMissError as CacheMissError
    from cachegraph.errors import InvalidEncoding as InvalidEncoding
    from cachegraph.errors import SettingsError as SettingsError
    from cachegraph.errors import SourceError as SourceError
    from cachegraph.errors import StoreError as StoreError
    from cachegraph.errors import Unfingerprintable as Unfingerprintable
    from cachegraph.key import CacheKey as CacheKey

_MODULE_OF = {
    "Cache": "cachegraph.cache",
    "default_cache": "cachegraph.cache",
    "counters": "cachegraph.caching.counters",
    "CacheKey": "cachegraph.key",
    "CachegraphError": "cachegraph.errors",
    "CacheMissError": "cachegraph.errors",
    "InvalidEncoding": "cachegraph.errors",
    "SettingsError": "cachegraph.errors",
    "SourceError": "cachegraph.errors",
    "StoreError": "cachegraph.errors",
    "Unfingerprintable": "cachegraph.errors",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'cachegraph' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
