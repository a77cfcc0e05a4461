"""libllvmlite, the shared library that has LLVM in it, called without llvmlite's Python package.

Importing `llvmlite.binding` takes six times as long as opening its library (decision 0087). Here the library
is opened by ctypes, at the first call, and a module that needs functions of it declares them in a table:

    LLVM = LLVMFunctions({"LLVMPY_GetProcessTriple": (None, TEXT_OUT)})

A process that also imports `llvmlite.binding` has the library once, since the system opens a file once. Each
call holds a lock of this module, and llvmlite's own if its package is imported: no two threads are in
LLVM at once, whichever way they went in.

A wrong declaration would crash the process. The declarations were checked against the releases in
CHECKED_RELEASES. In another release, each is compared with llvmlite's own: its package is then imported.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from cachegraph.errors import CachegraphError
from cachegraph.forking import PausableLock, Rank, pause_at_forks

CHECKED_RELEASES = ("0.48", "0.49", "0.50")
TEXT_OUT = ctypes.POINTER(ctypes.c_void_p)
"""The argument through which a function returns a text, which the caller frees: a `char **`."""

_LOCK = threading.RLock()
_NO_LOCK = nullcontext()


class LLVMLibraryError(CachegraphError):
    """A library that cannot be used: what was being done (`doing`), to what (`subject`), what was `found`."""

    def __init__(self, doing: str, subject: str, found: str) -> None:
        super().__init__(doing, subject, found)
        self.doing = doing
        self.subject = subject
        self.found = found

    def __str__(self) -> str:
        tested = f"{CHECKED_RELEASES[0]} to {CHECKED_RELEASES[-1]}"
        return f"{self.doing} {self.subject}: {self.found}; install a release of llvmlite from {tested}"


class LLVMFunctions:
    """Functions of libllvmlite as attributes, each resolved at its first use.

    `signatures` has, for each name, the ctypes type of the result and those of the arguments. The first use
    raises LLVMLibraryError if there is no library, or none that has such a function.
    """

    def __init__(self, signatures: Mapping[str, tuple[Any, ...]]) -> None:
        self.signatures = signatures

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self.signatures:
            raise AttributeError(name)
        result, *arguments = self.signatures[name]
        function = _locked(_declared(name, result, arguments))
        setattr(self, name, function)
        return function


LLVM = LLVMFunctions({"LLVMPY_DisposeString": (None, ctypes.c_void_p)})


def with_text(function: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """Call `function` with `arguments` and a last one of TEXT_OUT; return its result, and the text that it
    wrote, "" if none."""
    place = ctypes.c_void_p()
    result = function(*arguments, ctypes.byref(place))
    if place.value is None:
        return result, ""
    try:
        return result, ctypes.string_at(place.value).decode()
    finally:
        LLVM.LLVMPY_DisposeString(place)


def declared_otherwise(name: str, result: Any, arguments: list[Any]) -> str:
    """Return how llvmlite declares the function `name`, if that contradicts these types; "" if it agrees.

    It does not declare everything: what it is silent about agrees.
    """
    import llvmlite.binding.ffi as llvmlite

    theirs = getattr(llvmlite.lib, name)
    if theirs.argtypes is not None and list(map(_shape, theirs.argtypes)) != list(map(_shape, arguments)):
        return f"its arguments are declared as {', '.join(kind.__name__ for kind in theirs.argtypes)}"
    if result is not None and _shape(theirs.restype) != _shape(result):
        return f"its result is declared as {getattr(theirs.restype, '__name__', 'nothing')}"
    return ""


@cache
def _library() -> tuple[ctypes.CDLL, bool, PausableLock]:
    """Return libllvmlite, and True if its functions have been checked. A fork waits for calls to it."""
    import llvmlite
    from llvmlite.utils import get_library_name

    path = os.path.join(llvmlite.__path__[0], "binding", get_library_name())
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise LLVMLibraryError("opening", path, str(error)) from error
    calls = PausableLock(_LOCK)
    pause_at_forks(calls, Rank.LLVM)
    return library, llvmlite.__version__.startswith(tuple(f"{it}." for it in CHECKED_RELEASES)), calls


def _declared(name: str, result: Any, arguments: list[Any]) -> Any:
    library, is_checked, _ = _library()
    try:
        found = library[name]
    except AttributeError as error:
        raise LLVMLibraryError("looking for", name, str(error)) from error
    contradiction = "" if is_checked else declared_otherwise(name, result, arguments)
    if contradiction:
        raise LLVMLibraryError(
            "calling", name, f"{library._name} is of an unknown release, and {contradiction}"
        )
    found.restype, found.argtypes = result, arguments
    return found


def _locked(function: Any) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        with _LOCK, _lock_of_llvmlite():
            return function(*arguments)

    return call


def _lock_of_llvmlite() -> AbstractContextManager[Any]:
    """Return the lock that llvmlite's package holds during a call, if it is imported."""
    package = sys.modules.get("llvmlite.binding.ffi")
    found: AbstractContextManager[Any] = getattr(getattr(package, "lib", None), "_lock", _NO_LOCK)
    return found


def _shape(kind: Any) -> Any:
    """Return what two ctypes types have in common that are passed alike: pointers only differ by the
    structures, with fields, that they point to."""
    pointed = getattr(kind, "_type_", None)
    if not isinstance(pointed, type):
        return "pointer" if pointed in ("P", "z") else pointed
    fields = [(name, _shape(field)) for name, field in getattr(pointed, "_fields_", ())]
    return ("pointer", fields) if fields else "pointer"
