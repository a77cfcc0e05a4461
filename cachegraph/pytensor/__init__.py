"""The adapter for PyTensor: every function that it compiles comes from the cache.

    import cachegraph.pytensor

    cachegraph.pytensor.install()                    # compiled by numba, as before
    cachegraph.pytensor.install(backend="engine")    # computed by the engine

Importing this does nothing; `install` imports PyTensor. From below, each floor importing only those before
it:

    backends    numba, and others that are found by entry points
    errors      what the adapter refuses, and how its own failures are logged and counted
    describe    PyTensor's graphs and all that rewriting depends on -> cache key; explanations of keys
    stored      optimized graphs and inner graphs in the form in which entries hold them
    code        code that numba compiled, of functions and of single Ops
    nutpie      the functions of C that nutpie has numba compile
    making      hooks into PyTensor, and the maker that looks functions up
    activation  the same, installed by a variable of the environment
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cachegraph.pytensor.backends import UnknownBackend as UnknownBackend
    from cachegraph.pytensor.errors import UnsupportedPyTensor as UnsupportedPyTensor
    from cachegraph.pytensor.making.installing import install as install
    from cachegraph.pytensor.making.installing import uninstall as uninstall
    from cachegraph.pytensor.making.outcome import explain as explain

_MODULE_OF = {
    "UnknownBackend": "cachegraph.pytensor.backends",
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
