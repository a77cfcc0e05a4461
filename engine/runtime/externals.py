"""The symbols that object code may use: libm and memory functions, SciPy's special functions, and as
externals BLAS, LAPACK and numpy's.

BLAS and LAPACK come from the OpenBLAS that numpy has loaded, or else from SciPy's `cython_blas` and
`cython_lapack`, whose extension files are loaded without importing scipy.linalg
(docs/decisions/0002-blas-from-numpy.md). A symbol is resolved when a kernel first needs it. They
follow Fortran's conventions: every argument is an address. An integer is passed as the address of an
int64, of which a library with 32-bit integers reads and writes the low half (both supported processors
are little-endian): a kernel may pass only integers below 2**31, and clears the ones that the library
sets.

Special functions come from SciPy's `cython_special`, which is imported when a kernel first needs one. They
hold no lock, and take and return doubles.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from functools import cache

from cachegraph.errors import CythonFunctionError
from engine.runtime.errors import LoadError
from engine.runtime.numpy_functions import NUMPY_FUNCTIONS, numpy_function

_BLAS = {"gemm": 13, "gemv": 11}
_LAPACK = {"getrf": 6, "getrs": 9, "potrf": 5, "syevd": 11, "syevr": 21, "trtrs": 10}
LINEAR_ALGEBRA = {
    f"{library}_{precision}{routine}": count
    for library, routines in (("blas", _BLAS), ("lapack", _LAPACK))
    for routine, count in routines.items()
    for precision in "ds"
}
EXTERNALS = LINEAR_ALGEBRA | NUMPY_FUNCTIONS
"""The externals that a kernel may call, with the number of their arguments."""

_LIBM = (
    "exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "sqrt cbrt pow fmod hypot floor ceil trunc rint round atan2 erf erfc lgamma tgamma ldexp nextafter"
)
PROCESS_SYMBOLS = frozenset(
    (*_LIBM.split(), *(f"{name}f" for name in _LIBM.split()))
    + ("sincos", "sincosf", "memset", "memcpy", "memmove", "bzero", "__bzero", "_fltused")
)
"""The symbols that object code may leave undefined: the C library of every process has them."""


_SPECIAL = r"special_([a-z][a-z0-9_]*)_([1-9])\Z"
"""Compiled when a kernel first has such a symbol: most have none."""


def special_symbol(name: str, arity: int) -> str:
    """Return the symbol of the function `name` of `cython_special` for `arity` doubles."""
    return f"special_{name}_{arity}"


def is_allowed(symbol: str) -> bool:
    """Return True if object code may leave `symbol` (without the platform's prefix) undefined."""
    return symbol in PROCESS_SYMBOLS or symbol in EXTERNALS or re.match(_SPECIAL, symbol) is not None


def resolve(symbol: str) -> int:
    """Return the address of `symbol` in this process; raises LoadError if it is not allowed or not
    found."""
    if symbol in NUMPY_FUNCTIONS:
        return numpy_function(symbol)
    if symbol in LINEAR_ALGEBRA:
        return _linear_algebra(symbol)
    if symbol in PROCESS_SYMBOLS:
        return _process_symbol(symbol)
    if special := re.match(_SPECIAL, symbol):
        return _special_function(special[1], int(special[2]))
    raise LoadError("resolving", symbol, "object code may not ask a process for it")


def c_function(name: str) -> int:
    """Return the address of a function of this process's C library; raises LoadError if it has none."""
    return _process_symbol(name)


@cache
def _process_symbol(symbol: str) -> int:
    if (found := _address(ctypes.CDLL(None), symbol)) is not None:
        return found
    raise LoadError("resolving", symbol, "this process's C library does not have it")


@cache
def _special_function(name: str, arity: int) -> int:
    from cachegraph.object_code.cython_functions import function_of_doubles  # few kernels need SciPy

    try:
        return function_of_doubles("scipy.special.cython_special", name, arity)
    except CythonFunctionError as error:
        raise LoadError("resolving", name, str(error)) from error


def _address(library: ctypes.CDLL, symbol: str) -> int | None:
    try:
        return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    except AttributeError:
        return None


@cache
def _linear_algebra(external: str) -> int:
    library_name, routine = external.split("_", 1)
    for library in _libraries_numpy_loaded():
        for symbol in (f"scipy_{routine}_64_", f"scipy_{routine}_", f"{routine}_64_", f"{routine}_"):
            if (found := _address(library, symbol)) is not None:
                return found
    return _from_scipy(f"cython_{library_name}", routine)


@cache
def _libraries_numpy_loaded() -> tuple[ctypes.CDLL, ...]:
    return tuple(_opened_if_loaded(numpy_libraries()))


def numpy_libraries() -> list[str]:
    """Return the paths of the BLAS libraries in numpy's wheel, sorted; none if numpy uses another
    library."""
    import numpy

    package = os.path.dirname(numpy.__file__)
    directories = (os.path.join(os.path.dirname(package), "numpy.libs"), os.path.join(package, ".dylibs"))
    return sorted(
        os.path.join(directory, name)
        for directory in directories
        if os.path.isdir(directory)
        for name in os.listdir(directory)
        if "openblas" in name
    )


def _opened_if_loaded(paths: list[str]) -> Iterator[ctypes.CDLL]:
    if not hasattr(os, "RTLD_NOLOAD"):
        return
    for path in paths:
        try:
            yield ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue


def _from_scipy(extension: str, routine: str) -> int:
    from cachegraph.object_code.cython_functions import cython_function

    try:
        return cython_function(f"scipy.linalg.{extension}", routine)
    except CythonFunctionError as error:
        raise LoadError("resolving", routine, str(error)) from error
