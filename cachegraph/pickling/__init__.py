"""The pickling of entries and of users' values, and its loading without trust in the bytes.

    content := a pickle of protocol 5, in which persistent ids stand for what is not in it:
        n                     (an int)          object n of those that the caller gives as external
        name                  (text)            the object of that name that the caller has at hand
        ("import", module, place)               the function that this import path gives (import_path.py)
        ("blob", digest, is read-only)   an array of over 64 KiB: a blob (large_arrays.py)

Loading resolves only classes of the packages that the caller trusts, functions of these declared
with `rebuilds_pickled`, and the few functions by which numpy rebuilds arrays, scalars and dtypes. A
function named by its import path is a value, resolved only if the caller declares that path. The
declaration never comes from the pickle or from what is stored beside it, but from the graph at
hand, or from the key that found the entry (docs/decisions/0046). A pickle may call only what it
names, not objects that it was given or made, and change only objects that it made. Anything else is
refused before it is imported, called or changed.

Opcodes are not trusted, either. Only those that `dumps` writes are executed; numpy gets only
dtypes, shapes and bytes that fit each other (calls.py), and an array gets its content once; no more
bytes are copied than the pickle contains; and nested tuples are limited to a depth and unshared
size that can be hashed, compared and freed.

Version history
    1  persistent ids are external objects, by number
    2  external objects by name; functions by their import paths; large arrays as blobs
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cachegraph.pickling.errors import InvalidPickle, Unpicklable, UnresolvedFunction, UntrustedPickle
    from cachegraph.pickling.loading import EVERYTHING, loads
    from cachegraph.pickling.saving import dumps, import_paths

__all__ = [
    "EVERYTHING",
    "InvalidPickle",
    "Unpicklable",
    "UnresolvedFunction",
    "UntrustedPickle",
    "dumps",
    "import_paths",
    "loads",
]

_PLACES = (
    dict.fromkeys(["InvalidPickle", "Unpicklable", "UnresolvedFunction", "UntrustedPickle"], "errors")
    | dict.fromkeys(["EVERYTHING", "loads"], "loading")
    | dict.fromkeys(["dumps", "import_paths"], "saving")
)
"""Public names by the module that has them: most hits pickle nothing and import none of them."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
