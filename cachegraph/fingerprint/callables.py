"""Encoders of Python's callables, by what they do: their code, and all that it reads.

    definition := 'L' bytes(body*)              body := bytes(what is written for one callable, class or instance)
    reference  := '@' uint                      within a definition: the body of that number, in the order of first use
    named      := 'n' text(module) text(qualname) origin                        a function of a module that is not followed
    function   := 'f' code value(defaults) value(keyword defaults) value(attributes) cell* read* import*
    cell       := '+' value | '-'                                               the free variables; '-' if never set
    read       := text(name) uint(n) text*n found                               a global, and attributes taken from it
    found      := '+' value | '-' | 'M' module                                  '-' if there is none of that name
    import     := text(module) module
    module     := text(name) origin
    partial    := 'p' value(function) value(arguments) value(keywords)
    method     := 'm' value(self) value(function) | 'b' value(self) text(name)  of a class in Python; of a native one
    wrapper    := 'w' text(kind) value(what it wraps) value(its options)

A definition holds all that its root reaches, each once, so cycles end and sharing does not matter to what is outside of
it. Where a module comes from decides how deep this goes: what belongs to Python, to an installed release or to a
package that another part of the key describes is a name and a version; all else is followed.

What cannot be followed is refused: code that reads `globals`, `eval` or the like, a followed module used as a whole.
"""

from __future__ import annotations

import builtins
import functools
import operator
import sys
from importlib.util import resolve_name
from types import CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import numba_types
from cachegraph.fingerprint.bytecode import Import, Read, encode_code, imports, reads
from cachegraph.fingerprint.names import is_importable
from cachegraph.fingerprint.native import NATIVE_TYPES, is_native_type, is_of_extension, write_native
from cachegraph.fingerprint.origin import origin_of, write_origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachegraph.fingerprint.hasher import Encoder

_UNBOUNDED = ("eval", "exec", "globals", "locals", "vars", "__import__", "compile")
_NOT_IDENTITY = ("__wrapped__", "__doc__", "__module__", "__name__", "__qualname__")


def encode_function(encoder: Encoder, value: FunctionType) -> None:
    """Write a Python function."""
    encoder.definition(value, _write_function)


def _write_function(encoder: Encoder, value: FunctionType) -> None:
    module = value.__module__
    if (
        isinstance(module, str)
        and is_importable(value)
        and origin_of(module, encoder.described) != "followed"
    ):
        encoder.tag(b"n")
        encoder.text(module)
        encoder.text(value.__qualname__)
        write_origin(encoder, module, encoder.described)
        return
    encoder.tag(b"f")
    try:
        encode_code(encoder, value.__code__)
        _write_bound(encoder, value)
        _write_reads(encoder, value)
    except Unfingerprintable as error:
        error.inside(f"function {value.__qualname__}")
        raise


def _write_bound(encoder: Encoder, value: FunctionType) -> None:
    """What was bound when the function was made: defaults, attributes, free variables."""
    attributes = {name: item for name, item in vars(value).items() if name not in _NOT_IDENTITY}
    for label, item in (
        ("defaults", value.__defaults__),
        ("keyword defaults", value.__kwdefaults__),
        ("attributes", attributes),
    ):
        _write_inside(encoder, item, label)
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        _write_cell(encoder, name, cell)


def _write_cell(encoder: Encoder, name: str, cell: CellType) -> None:
    try:
        content = cell.cell_contents
    except ValueError:  # a cell that nothing was put into yet
        encoder.tag(b"-")
        return
    encoder.tag(b"+")
    _write_inside(encoder, content, f"cell {name!r}")


def _write_inside(encoder: Encoder, value: object, label: str) -> None:
    try:
        encoder.value(value)
    except Unfingerprintable as error:
        error.inside(label)
        raise


def _write_reads(encoder: Encoder, value: FunctionType) -> None:
    found = reads(value.__code__)
    encoder.uint(len(found))
    for read in found:
        _write_read(encoder, value, read)
    needed = imports(value.__code__)
    encoder.uint(len(needed))
    for item in needed:
        _write_import(encoder, value, item)


def _write_read(encoder: Encoder, function: FunctionType, read: Read) -> None:
    encoder.text(read.name)
    if read.name not in function.__globals__:
        _write_builtin(encoder, read)
        return
    value = function.__globals__[read.name]
    taken = 0
    while isinstance(value, ModuleType) and taken < len(read.attributes):
        if not hasattr(value, read.attributes[taken]):
            break
        value = getattr(value, read.attributes[taken])
        taken += 1
    encoder.uint(taken)
    for name in read.attributes[:taken]:
        encoder.text(name)
    encoder.tag(b"+")
    _write_inside(encoder, value, ".".join((f"global {read.name!r}", *read.attributes[:taken])))


def _write_builtin(encoder: Encoder, read: Read) -> None:
    if read.name in _UNBOUNDED:
        raise Unfingerprintable(
            f"code that reads {read.name!r}", "what it reaches cannot be told; name what it needs instead"
        )
    encoder.uint(0)
    encoder.tag(b"+" if hasattr(builtins, read.name) else b"-")
    if hasattr(builtins, read.name):
        _write_inside(encoder, getattr(builtins, read.name), f"builtin {read.name!r}")


def _write_import(encoder: Encoder, function: FunctionType, item: Import) -> None:
    package = function.__globals__.get("__package__") or ""
    module = resolve_name("." * item.level + item.module, package) if item.level else item.module
    encoder.text(module)
    found = sys.modules.get(module)
    taken = [name for name in item.names if found is not None and hasattr(found, name)]
    if origin_of(module, encoder.described) != "followed" or len(taken) != len(item.names) or not taken:
        encoder.uint(0)
        _write_module(encoder, module)
        return
    encoder.uint(len(taken))
    for name in taken:
        encoder.text(name)
        _write_inside(encoder, getattr(found, name), f"{module}.{name}")


def encode_module(encoder: Encoder, value: ModuleType) -> None:
    """Write a module that is used as a whole; raises Unfingerprintable for one whose code is followed."""
    _write_module(encoder, value.__name__)


def _write_module(encoder: Encoder, module: str) -> None:
    if origin_of(module, encoder.described) == "followed":
        raise Unfingerprintable(
            f"module {module}, used as a whole",
            "code is followed by what is read of a module; import it at the top of the file and read attributes of it",
        )
    encoder.tag(b"M")
    encoder.text(module)
    write_origin(encoder, module, encoder.described)


def encode_method(encoder: Encoder, value: MethodType) -> None:
    """Write a bound method: what it is bound to, and the function."""
    encoder.definition(value, _write_method)


def _write_method(encoder: Encoder, value: MethodType) -> None:
    if is_of_extension(value.__self__):
        _write_bound_by_name(encoder, value)
        return
    encoder.tag(b"m")
    _write_inside(encoder, value.__self__, ".__self__")
    encoder.value(value.__func__)


def _write_bound_by_name(encoder: Encoder, value: Any) -> None:
    """A native method: the object, which its module holds under a name unless it is a plain value, and the name."""
    owner = value.__self__
    encoder.tag(b"b")
    if is_of_extension(owner):
        encoder.definition(owner, write_native)
    else:
        _write_inside(encoder, owner, ".__self__")
    encoder.text(value.__name__)


def encode_native(encoder: Encoder, value: Any) -> None:
    """Write a native function, by its name; or a native method, with what it is bound to."""
    encoder.definition(value, _write_native)


def _write_native(encoder: Encoder, value: Any) -> None:
    home = getattr(value, "__self__", None)
    try:
        write_native(encoder, value)
    except Unfingerprintable:
        if home is None or isinstance(home, ModuleType) or not hasattr(type(home), value.__name__):
            raise
        _write_bound_by_name(encoder, value)


def encode_partial(encoder: Encoder, value: functools.partial[Any]) -> None:
    """Write a partial by its parts; raises Unfingerprintable if it has attributes of its own."""
    if vars(value):
        raise Unfingerprintable("functools.partial with attributes", "set none on it")
    encoder.definition(value, _write_partial)


def _write_partial(encoder: Encoder, value: functools.partial[Any]) -> None:
    encoder.tag(b"p")
    for label in ("func", "args", "keywords"):
        _write_inside(encoder, getattr(value, label), f".{label}")


def _wrapper(kind: str, inner: str, *options: str) -> Callable[[Encoder, Any], None]:
    """The encoder of objects that wrap a callable, their attribute `inner`, with plain `options`."""

    def write(encoder: Encoder, value: Any) -> None:
        encoder.tag(b"w")
        encoder.text(kind)
        _write_inside(encoder, getattr(value, inner), f".{inner}")
        encoder.value({name: getattr(value, name) for name in options})

    return _defined_by(write)


def _defined_by(write: Callable[[Encoder, Any], None]) -> Callable[[Encoder, Any], None]:
    return lambda encoder, value: encoder.definition(value, write)


def _write_property(encoder: Encoder, value: property) -> None:
    encoder.tag(b"w")
    encoder.text("property")
    encoder.value((value.fget, value.fset, value.fdel))


def _write_lru_cache(encoder: Encoder, value: Any) -> None:
    encoder.tag(b"w")
    encoder.text("lru_cache")  # what it remembers is no identity: it is what the function would give
    _write_inside(encoder, value.__wrapped__, ".__wrapped__")


def _write_getter(encoder: Encoder, value: Any) -> None:
    encoder.tag(b"w")
    encoder.text(type(value).__qualname__)
    encoder.value(tuple(value.__reduce__()[1:]))


ENCODERS: dict[type, Callable[[Encoder, Any], None]] = {
    FunctionType: encode_function,
    ModuleType: encode_module,
    MethodType: encode_method,
    **dict.fromkeys(NATIVE_TYPES, encode_native),
    functools.partial: encode_partial,
    functools.cached_property: _wrapper("cached_property", "func", "attrname"),
    type(functools.lru_cache(len)): _defined_by(_write_lru_cache),
    staticmethod: _wrapper("staticmethod", "__func__"),
    classmethod: _wrapper("classmethod", "__func__"),
    property: _defined_by(_write_property),
    operator.itemgetter: _defined_by(_write_getter),
    operator.attrgetter: _defined_by(_write_getter),
    operator.methodcaller: _defined_by(_write_getter),
}


def encoder_for(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the encoder for instances of `cls` if they are callables or modules; None if not."""
    if cls in ENCODERS:
        return ENCODERS[cls]
    if cls.__module__.startswith("numba."):
        return numba_types.encoder_for(cls)
    if cls.__module__ == "numpy" and cls.__qualname__ == "vectorize":
        return _wrapper("vectorize", "pyfunc", "otypes", "excluded", "signature", "cache")
    return encode_native if is_native_type(cls) else None
