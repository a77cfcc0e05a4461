"""Encoders of Python callables, by their code and everything that it reads.

    definition := 'L' bytes(body* order*)   body := bytes(what is written for one callable, class or instance)
    order   := uint(n) text(name)*n   if some of the code takes `__dict__`: of each class, in the order of the
                                                bodies, the names of its attributes in theirs
    reference  := '@' uint   within a definition: the body of that number, in the order of first use
    named      := 'n' text(module) text(qualname) origin (origin | '-')
                                                a function of a module that is not followed;
                                                the origin of its code, if that differs
    function   := 'f' text(name) text(qualname) code value(defaults) value(keyword defaults) value(attributes)
                  cell* read* import* uint(n) value*n   last, what others registered for it with numba
    cell   := '+' value | '-'   the free variables; '-' if never set
    read   := text(name) uint(n) text*n found   a global, and attributes taken from it
    found   := '+' value | '-' | 'M' module   '-' if there is none of that name
    import     := text(module) uint(n) (text(name) value)*n (module)
                                                names of a followed module; or the module,
                                                and the names that were replaced in it
    module     := text(name) origin
    method     := 'b' value(self) text(name)                                    of a native class
    wrapped    := wrapper                                                       wrappers.py

A definition contains everything that its root reaches, each object once, so cycles end, and sharing
does not matter outside. Modules of Python, of an installed release, or of a package that another
part of the key describes are written as a name and a version; the code of all others is followed.

Refused is code that cannot be followed: code that reaches `globals`, `eval` and the like, or
attributes such as `__globals__` and `__doc__` that no definition contains, and followed modules
used as a whole.
"""

from __future__ import annotations

import sys
from importlib.util import resolve_name
from types import CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import numba_types, wrappers
from cachegraph.fingerprint.bytecode import (
    GlobalRead,
    Import,
    attributes,
    encode_code,
    imports,
    look_up,
    reads,
)
from cachegraph.fingerprint.native import (
    NATIVE_TYPES,
    is_native_type,
    is_of_extension,
    native_name,
    write_native_name,
    write_native_object,
)
from cachegraph.fingerprint.origin import is_known_by_name, origin_of, write_code_origin, write_origin
from cachegraph.fingerprint.registrations import registered_for
from cachegraph.fingerprint.wrappers import (
    dispatched,
    own_attributes,
    refuse_undescribed,
    write_dispatched,
    write_inside,
    write_method,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cachegraph.fingerprint.encoder import Encoder

# Names that reach code and globals which no instruction mentions; None stands for the module as a whole.
_UNBOUNDED = frozenset(
    (
        *(
            ("builtins", name)
            for name in (None, "eval", "exec", "globals", "locals", "vars", "__import__", "compile")
        ),
        *(("importlib", name) for name in (None, "import_module", "__import__", "reload")),
        *(("sys", name) for name in (None, "_getframe", "_current_frames")),
        *(("inspect", name) for name in (None, "currentframe", "stack", "get_annotations", "getfullargspec")),
        *(
            ("inspect", f"get{what}")
            for what in ("source", "sourcelines", "sourcefile", "file", "doc", "comments")
        ),
        *(("gc", name) for name in (None, "get_objects", "get_referrers")),
        *(("annotationlib", name) for name in (None, "get_annotations", "call_annotate_function")),
        *((module, "get_type_hints") for module in ("typing", "typing_extensions")),
        *((module, "get_original_bases") for module in ("types", "typing_extensions")),
        *(("runpy", name) for name in (None, "run_module", "run_path")),
        *(("linecache", name) for name in (None, "getline", "getlines")),
        ("pkgutil", "resolve_name"),
    )
)


def encode_function(encoder: Encoder, value: FunctionType) -> None:
    """Write a Python function."""
    encoder.definition(value, _write_function)


def _write_function(encoder: Encoder, value: FunctionType) -> None:
    if is_known_by_name(value, encoder.described):
        _write_known_by_name(encoder, value)
        return
    implementations = dispatched(value)
    if implementations is not None:
        write_dispatched(encoder, value, implementations)
        return
    encoder.tag(b"f")
    encoder.text(value.__name__)
    encoder.text(value.__qualname__)
    try:
        _look_through(encoder, value)
        encode_code(encoder, value.__code__)
        _write_bound(encoder, value)
        _write_reads(encoder, value)
        _write_registered(encoder, value)
    except Unfingerprintable as error:
        error.inside(f"function {value.__qualname__}")
        raise


def _write_known_by_name(encoder: Encoder, value: FunctionType) -> None:
    module = value.__module__
    _refuse_unbounded(module, value.__qualname__)
    encoder.tag(b"n")
    encoder.text(module)
    encoder.text(value.__qualname__)
    write_origin(encoder, module, encoder.described)
    write_code_origin(encoder, module, value.__globals__.get("__name__"), encoder.described)


def _refuse_unbounded(module: str, name: str | None) -> None:
    if (module, name) in _UNBOUNDED:
        raise Unfingerprintable(
            f"code that reaches {f'module {module}' if name is None else repr(name)}",
            "what it reaches cannot be told; name what it needs instead",
        )


def _look_through(encoder: Encoder, value: FunctionType) -> None:
    """Refuse code that takes attributes no definition describes; if it takes `__dict__`, describe attribute
    order."""
    home = value.__globals__.get("__name__")
    if isinstance(home, str) and origin_of(home, encoder.described) != "followed":
        return  # made by a release from its own code: its name describes it
    taken = attributes(value.__code__)
    refuse_undescribed(taken)
    if "__dict__" in taken:
        encoder.write_order()


def _write_bound(encoder: Encoder, value: FunctionType) -> None:
    """Write what was bound when the function was made: defaults, attributes, free variables."""
    for label, item in (
        ("defaults", value.__defaults__),
        ("keyword defaults", value.__kwdefaults__),
        ("attributes", own_attributes(value)),
    ):
        write_inside(encoder, item, label)
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        _write_cell(encoder, name, cell)


def _write_cell(encoder: Encoder, name: str, cell: CellType) -> None:
    try:
        content = cell.cell_contents
    except ValueError:  # the cell is still empty
        encoder.tag(b"-")
        return
    encoder.tag(b"+")
    write_inside(encoder, content, f"cell {name!r}")


def _write_reads(encoder: Encoder, value: FunctionType) -> None:
    found = reads(value.__code__)
    encoder.uint(len(found))
    for read in found:
        _write_read(encoder, value, read)
    needed = imports(value.__code__)
    encoder.uint(len(needed))
    for item in needed:
        _write_import(encoder, value, item)


def _write_registered(encoder: Encoder, value: FunctionType) -> None:
    registered = registered_for(value)
    encoder.uint(len(registered))
    for item in registered:
        write_inside(encoder, item, "what is registered for it with numba")


def _write_read(encoder: Encoder, function: FunctionType, read: GlobalRead) -> None:
    encoder.text(read.name)
    own = read.name in function.__globals__
    space = function.__globals__ if own else _builtins_of(function)
    if read.name not in space:
        encoder.uint(0)
        encoder.tag(b"-")
        return
    value, taken = look_up(space, read)
    encoder.uint(len(taken))
    for name in taken:
        encoder.text(name)
    encoder.tag(b"+")
    write_inside(encoder, value, ".".join((f"{'global' if own else 'builtin'} {read.name!r}", *taken)))


def _builtins_of(function: Any) -> dict[str, object]:
    found: dict[str, object] = function.__builtins__
    return found


def _write_import(encoder: Encoder, function: FunctionType, item: Import) -> None:
    package = function.__globals__.get("__package__") or ""
    module = resolve_name("." * item.level + item.module, package) if item.level else item.module
    encoder.text(module)
    found = sys.modules.get(module)
    taken = {name: getattr(found, name) for name in item.names if found is not None and hasattr(found, name)}
    if origin_of(module, encoder.described) != "followed":
        _refuse_each_unbounded(module, item.names)
        taken = {name: value for name, value in taken.items() if _is_replaced(value, encoder.described)}
        _write_module(encoder, module, bool(item.names))
    elif not taken or len(taken) != len(item.names):
        _write_module(encoder, module)
    encoder.uint(len(taken))
    for name, value in taken.items():
        encoder.text(name)
        write_inside(encoder, value, f"{module}.{name}")


def _refuse_each_unbounded(module: str, names: tuple[str, ...]) -> None:
    for name in names:
        _refuse_unbounded(module, name)


def _is_replaced(value: Any, described: Collection[str]) -> bool:
    """Return True if a value in a module that is not followed is, or wraps, something from a followed
    module."""
    for name in ("py_func", "func", "__func__", "__wrapped__"):
        if not isinstance(value, type | FunctionType):
            value = getattr(value, name, value)
    if isinstance(value, FunctionType):
        return not is_known_by_name(value, described)
    cls = value if isinstance(value, type) else type(value)
    return origin_of(cls.__module__, described) == "followed"


def encode_module(encoder: Encoder, value: ModuleType) -> None:
    """Write a module that is used as a whole; raises Unfingerprintable for a followed one."""
    _write_module(encoder, value.__name__)


def _write_module(encoder: Encoder, module: str, in_part: bool = False) -> None:
    if not in_part:
        _refuse_unbounded(module, None)
    if origin_of(module, encoder.described) == "followed":
        raise Unfingerprintable(
            f"module {module}, used as a whole",
            "code is followed by what it reads of a module; import it at the top and read its attributes",
        )
    encoder.tag(b"M")
    encoder.text(module)
    write_origin(encoder, module, encoder.described)


def encode_method(encoder: Encoder, value: MethodType) -> None:
    """Write a bound method: the object and the function."""
    encoder.definition(value, _write_method)


def _write_method(encoder: Encoder, value: MethodType) -> None:
    if is_of_extension(value.__self__):
        _write_bound_by_name(encoder, value)
    else:
        write_method(encoder, value)


def _write_bound_by_name(encoder: Encoder, value: Any) -> None:
    """Write a native method: its object, by name unless it is a plain value, and the name of the method."""
    owner = value.__self__
    encoder.tag(b"b")
    if is_of_extension(owner):
        encoder.definition(owner, write_native_object)
    else:
        write_inside(encoder, owner, ".__self__")
    encoder.text(value.__name__)


def encode_native(encoder: Encoder, value: Any) -> None:
    """Write a native function by its name, or a native method with its object."""
    encoder.definition(value, _write_native)


def _write_native(encoder: Encoder, value: Any) -> None:
    home = getattr(value, "__self__", None)
    try:
        module, place = native_name(value)
    except Unfingerprintable:
        if home is None or isinstance(home, ModuleType) or not hasattr(type(home), value.__name__):
            raise
        _write_bound_by_name(encoder, value)
        return
    _refuse_unbounded(module, place)
    write_native_name(encoder, value, module, place)


ENCODERS: dict[type, Callable[[Encoder, Any], None]] = {
    FunctionType: encode_function,
    ModuleType: encode_module,
    MethodType: encode_method,
    **dict.fromkeys(NATIVE_TYPES, encode_native),
}


def encoder_for(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the encoder for instances of `cls` if they are callables or modules; None if not."""
    found = ENCODERS.get(cls) or wrappers.encoder_for(cls)
    if found is None and cls.__module__.startswith("numba."):
        found = numba_types.encoder_for(cls)
    if found is not None:
        return found
    return encode_native if is_native_type(cls) else None
