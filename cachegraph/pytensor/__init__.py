"""The adapter for PyTensor: every function that it compiles with numba comes from the cache.

    import cachegraph.pytensor

    cachegraph.pytensor.install()

Importing this does nothing; `install` imports PyTensor. From below, each floor importing only those before
it:

    errors      what the adapter refuses, and how its own failures are logged and counted
    describe    PyTensor's graphs and all that rewriting depends on -> cache key; explanations of keys
    stored      optimized graphs and inner graphs in the form in which entries hold them
    code        code that numba compiled, of functions and of single Ops
    making      hooks into PyTensor, and the maker that looks functions up
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cachegraph.pytensor.errors import UnsupportedPyTensor as UnsupportedPyTensor
    from cachegraph.pytensor.making.installing import install as install
    from cachegraph.pytensor.making.installing import uninstall as uninstall
    from cachegraph.pytensor.making.outcome import explain as explain

_MODULE_OF = {
    "UnsupportedPyTensor": "cachegraph.pytensor.errors",
    "explain": "cachegraph.pytensor.making.outcome",
    "install": "cachegraph.pytensor.making.installing",
    "uninstall": "cachegraph.pytensor.making.installing",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'cachegraph.pytensor' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
