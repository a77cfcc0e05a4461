"""Pickling of what a cache entry carries besides its program, and of users' values; loading it without trusting it.

    content := a pickle of protocol 5, in which persistent ids stand for what is not in it:
        n                     (an int)          object n of those that the caller gives as external
        name                  (text)            the object of that name that the caller has at hand
        ("import", module, place)               the function that this import path gives (import_path.py)
        ("blob", digest, is read-only)          what an array of over 64 KiB holds: a blob (cachegraph/pickling/large_arrays.py)

Loading resolves only what the packages that the caller trusts hold: their classes, and functions declared with
`rebuilds_pickled`; and the few functions by which numpy rebuilds its arrays, scalars and dtypes. A function named by its
import path is a value: it is resolved only if the caller declares that path. Who declares it is never the pickle, nor
anything that lies beside it: it is the graph in hand, or the key that the entry was found by (docs/decisions/0046). A
pickle calls only what it names, not what it was given or has made, and changes only what it has made. Anything else is
refused before it is imported, called or changed.

Neither are a pickle's opcodes believed. Only those that `dumps` writes are done; numpy is given only dtypes, shapes and bytes
that fit each other (calls.py), and an array is given its content once; what is copied is no more than the pickle holds; and
tuples in each other are neither deeper nor, without sharing, larger than what can be hashed, compared and freed.

Version history
    1  persistent ids are external objects, by number
    2  external objects by name; functions by their import paths; large arrays as blobs
"""

from cachegraph.pickling.errors import InvalidPickle, Unpicklable, UnresolvedFunction, UntrustedPickle
from cachegraph.pickling.loading import EVERYTHING, loads, rebuilds_pickled
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
    "rebuilds_pickled",
]
