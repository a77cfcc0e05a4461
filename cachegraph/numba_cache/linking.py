"""Linking of stored code into this process for calls from Python and from C, without numba's contexts.

numba's own loader first imports the registries of types and implementations that its compiler needs
(a quarter of a second), and compiles, in every process, Python functions that the code calls once
to learn an address. Running compiled code needs neither: here the stored object code is linked alone.

Before that, each undefined symbol of the object is looked up in the tables of numba's runtime and
of this interpreter; any other symbol is refused. Linked code stays for the life of the process: an
array that it made may outlive the function, and needs its code to be freed. Callers hold numba's
compiler lock, which a fork waits for.
"""

# mypy: disable-error-code="no-untyped-call,attr-defined"
from __future__ import annotations

import builtins
import ctypes
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm
from numba import _dynfunc, _helperlib
from numba.core.intrinsics import INTR_MATH
from numba.core.runtime import _nrt_python
from numba.core.typing.templates import signature

from cachegraph.errors import CachegraphError, ObjectLinkError
from cachegraph.named_tuples import NamedTuple
from cachegraph.numba_cache.compiled import Stored, environment
from cachegraph.object_code.cython_functions import cython_function
from cachegraph.object_code.elf import ObjectFile, Symbols
from cachegraph.object_code.linked import LinkedObjects
from cachegraph.object_code.linking import link

_LIBC = frozenset(
    "memset memcpy memmove bzero __bzero memcmp strlen exp exp2 expm1 log log1p log2 log10 sin cos sincos "
    "tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt cbrt pow fmod hypot floor ceil trunc rint "
    "round nearbyint atan2 erf erfc lgamma tgamma ldexp frexp fma copysign fmin fmax fabs nextafter expf "
    "exp2f expm1f logf log1pf log2f log10f sinf cosf sincosf tanf asinf acosf atanf sinhf coshf tanhf "
    "asinhf acoshf atanhf sqrtf cbrtf powf fmodf hypotf floorf ceilf truncf rintf roundf nearbyintf "
    "atan2f erff erfcf lgammaf tgammaf ldexpf frexpf fmaf copysignf fminf fmaxf fabsf nextafterf "
    "__powidf2 __powisf2 __divdc3 __muldc3 __divti3 __modti3 __udivti3 __umodti3 __multi3".split()
)
"""Functions of the C library and of compiler runtimes that LLVM and numba's mathematics call."""


class LinkError(CachegraphError):
    """Stored code that cannot run in this process; `found` says what it asks for, or what the linker says."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"linking a stored overload: {self.found}; numba loads it, or compiles it again"


class LinkedOverload(NamedTuple):
    """An overload that Python can call, with the attributes that numba's dispatchers expect."""

    signature: Any
    entry_point: Any
    objectmode: bool = False


_linked: dict[str, LinkedOverload] = {}
_callbacks: dict[str, int] = {}
_kept: list[tuple[object, ...]] = []


def link_overload(stored: Stored, identity: str) -> LinkedOverload:
    """Return the overload in `stored`, ready to be called with Python objects of its argument types.

    Each `identity` is linked once per process. Raises LinkError for code that this process cannot link,
    CythonFunctionError for an address that it lacks, and ObjectFormatError for damaged code.
    """
    found = _linked.get(identity)
    if found is None:
        found = _linked[identity] = _link(stored, identity)
    return found


def link_callback(stored: Stored, identity: str) -> int:
    """Return the address of the function of C in `stored`, which numba.cfunc made; raises as link_overload
    does."""
    found = _callbacks.get(identity)
    if found is None:
        entry = stored.described.descriptor(identity).llvm_cfunc_wrapper_name
        linked, _ = _linked_code(stored, identity, entry)
        found = _callbacks[identity] = linked.addresses[entry]
    return found


def forget_overload(identity: str) -> None:
    """Forget what is linked for `identity`, so that the next is linked from the stored code."""
    _linked.pop(identity, None)
    _callbacks.pop(identity, None)


def _link(stored: Stored, identity: str) -> LinkedOverload:
    described = stored.described
    entry = described.descriptor(identity).llvm_cpython_wrapper_name
    linked, main = _linked_code(stored, identity, entry)
    entry_point = _dynfunc.make_function(
        ModuleType(described.module),
        described.qualname.rpartition(".")[2],
        f"compiled wrapper for {described.qualname!r}",
        linked.addresses[entry],
        main,
        (linked,),
    )
    return LinkedOverload(signature(described.result, *described.arguments), entry_point)


def _linked_code(stored: Stored, identity: str, entry: str) -> tuple[LinkedObjects, Any]:
    """Return the linked code, with the address of its function `entry`, and its own environment."""
    described = stored.described
    globals_ = {"__name__": described.module}
    named = described.descriptor(identity)
    code = ObjectFile(stored.code)
    symbols = code.symbols_seen()
    wanted = (entry, *described.environments, *described.addresses)
    _refuse_unwritable(symbols, (*described.environments, *described.addresses))
    linked = _add(code, symbols.undefined, [name for name in wanted if name in symbols.defined])
    if entry not in linked.addresses:
        raise LinkError(f"it has no function {entry}")
    environments = {name: environment(name, held, globals_) for name, held in described.environments.items()}
    main = environments.get(named.env_name) or environment(named.env_name, [], globals_)
    for name, found in environments.items():
        if name in symbols.defined:
            _write(linked.addresses[name], id(found))
    for name, address in described.addresses.items():
        if name in symbols.defined:
            _write(linked.addresses[name], cython_function(*address))
    _kept.append((linked, *environments.values(), main))
    return linked, main


def _refuse_unwritable(symbols: Symbols, names: Iterable[str]) -> None:
    """Refuse code that cannot be written to at a symbol where an address belongs."""
    found = [name for name in names if name in symbols.defined - symbols.pointers]
    if found:
        raise LinkError(f"{', '.join(found)}, where there is no room for an address")


def _add(code: ObjectFile, undefined: Iterable[str], exported: Sequence[str]) -> LinkedObjects:
    try:
        return link([code], {name: _resolved(name) for name in undefined}, exported)
    except ObjectLinkError as error:
        raise LinkError(str(error)) from error


def _write(place: int, address: int) -> None:
    ctypes.c_void_p.from_address(place).value = address


def _resolved(name: str) -> int:
    """Return the address of a symbol that stored code may ask for; raises LinkError for any other."""
    found = _runtime().get(name)
    if found is None and (name in _LIBC or name.startswith(("Py", "_Py"))):
        found = llvm.address_of_symbol(name)
    if not found:
        raise LinkError(f"it asks for {name}, which no stored overload may have, or this process has not")
    return found


@cache
def _runtime() -> Mapping[str, int]:
    """Return symbol -> address of what numba's runtime offers compiled code, with the names that numba
    uses."""
    found = {"_Py_NoneStruct": id(None)}
    found.update((name, _helperlib.c_helpers[name]) for name in INTR_MATH)
    for helpers in (_helperlib.c_helpers, _dynfunc.c_helpers):
        found.update((f"numba_{name}", address) for name, address in helpers.items())
    for name, address in _nrt_python.c_helpers.items():
        found[name if name.startswith("_") else f"NRT_{name}"] = address
    for item in vars(builtins).values():
        if isinstance(item, type) and issubclass(item, BaseException):
            found[f"PyExc_{item.__name__}"] = id(item)
    return found
