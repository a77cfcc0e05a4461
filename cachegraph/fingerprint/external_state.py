"""The refusal of code that may read external state: environment, files, clocks, random state, settings.

The results of code may depend on external state. If a result is itself stored, no key describes
that state, so such code is refused. Followed code (origin.py) is searched by name: of all methods
that it might call, those are searched whose names are attributes that some of the code takes, and
those that operators call. Code that is not followed must be known to depend on its arguments alone
(pure.py), or belong to a package that the caller describes. Extension modules of users cannot be
searched, and are trusted.

Values also have properties that no key describes: the order of a set, and object identity. Code may
test membership in sets, and compare by identity with None, and with globals and free variables that
are no numbers, texts or tuples; other uses of identity are refused, and so are sets whose order
differs from that of equal sets in other processes. The caches of lru_cache functions are cleared,
since they may hold older results.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Collection, Iterable, Mapping, Set
from enum import Enum
from functools import lru_cache, partial
from importlib.util import resolve_name
from inspect import getattr_static
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.bytecode import (
    GlobalRead,
    Import,
    attributes,
    imports,
    look_up,
    reads,
    uses_of_values,
)
from cachegraph.fingerprint.native import is_native_type
from cachegraph.fingerprint.origin import is_known_by_name, origin_of
from cachegraph.fingerprint.pure import EXTERNAL_ATTRIBUTES, is_pure

_DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType)
_WRAPPED = ("py_func", "pyfunc", "func", "__func__", "__wrapped__", "fget")
_COPIED = (int, float, complex, str, bytes, tuple, frozenset, range, property, *_DESCRIPTORS)
_GETTERS = (operator.attrgetter, operator.methodcaller)
_LRU_CACHE = type(lru_cache(len))
# Methods that no code calls by name, but that create, print, hash or pickle an object, or annotate its class.
_NOT_OPERATORS = frozenset(
    (
        "__new__", "__init__", "__post_init__", "__init_subclass__", "__class_getitem__", "__set_name__",
        "__repr__", "__str__", "__hash__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
        "__getnewargs__", "__copy__", "__deepcopy__", "__del__", "__dir__", "__sizeof__",
        "__subclasshook__", "__class__", "__annotate__", "__annotate_func__",
    )
)  # fmt: skip


def refuse_external_state(
    functions: Iterable[Any], held: Mapping[str, object], described: Collection[str] = ()
) -> None:
    """Refuse (Unfingerprintable) `functions` that may read external state, or call functions that may.

    `held` maps names to what the instance holds whose methods they are. Code of the `described` packages
    reads no external state and is not followed.
    """
    walk = _Walk(described)
    for function in functions:
        walk.visit(getattr(function, "__self__", None))
        walk.visit(function)
    walk.visit_named(held)
    walk.refuse_attributes()


class _Walk:
    def __init__(self, described: Collection[str]) -> None:
        self._described = described
        self._seen: dict[int, object] = {}
        self._taken: set[str] = set()
        self._used: set[str] = set()
        self._spaces: dict[int, Mapping[str, object]] = {}
        self._modules: dict[int, ModuleType] = {}
        self._packages: set[str] = set()

    def visit(self, value: Any) -> None:
        """Inspect what code reaches; raises Unfingerprintable if it may read external state."""
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, FunctionType):
            self._visit_function(value)
        elif isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, dict | list | tuple | set | frozenset):
            _refuse_unordered(value)
            for item in value.values() if isinstance(value, dict) else value:
                self.visit(item)
        elif isinstance(value, ModuleType):
            self._modules[id(value)] = value
        elif isinstance(value, MethodType | BuiltinMethodType | partial):
            self._visit_bound(value)
        else:
            self._visit_instance(value)

    def visit_named(self, held: Mapping[str, object]) -> None:
        """Inspect what the classes, instances and modules seen so far, and `held`, have under names that code
        takes."""
        known = -1
        while known != len(self._seen):
            known = len(self._seen)
            for space in (held, *list(self._spaces.values())):
                for name in space.keys() & self._names_in(space):
                    if name in self._used or not isinstance(space[name], set | frozenset):
                        self.visit(space[name])
            for module in list(self._modules.values()):
                for name in self._taken & vars(module).keys():
                    self.visit(vars(module)[name])

    def refuse_attributes(self) -> None:
        """Refuse attributes taken by code that read external state in the packages seen so far."""
        for package in sorted(self._packages):
            for name in sorted(EXTERNAL_ATTRIBUTES.get(package, frozenset()) & self._taken):
                _refuse(package, name)

    def _names_in(self, space: Mapping[str, object]) -> Set[str]:
        operators = {name for name in space if name.startswith("__") and callable(space[name])}
        return self._taken | (operators - _NOT_OPERATORS)

    def _visit_function(self, function: FunctionType) -> None:
        home = function.__globals__.get("__name__")
        if is_known_by_name(function, self._described):
            self._require_pure(function.__module__, function.__qualname__)
            return
        try:
            if isinstance(home, str) and not self._follows(
                home
            ):  # code of a release that was given followed objects
                self._require_pure(home, function.__qualname__)
            else:
                self._visit_code(function)
            for item in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
                self.visit(item)
            for cell in function.__closure__ or ():
                self.visit(_content(cell))
            self.visit(getattr(function, "__wrapped__", None))
        except Unfingerprintable as error:
            error.inside(f"function {function.__qualname__}")
            raise

    def _visit_code(self, function: FunctionType) -> None:
        code = function.__code__
        self._taken |= attributes(code) | _texts(code)
        uses = uses_of_values(code)
        if function.__name__ != "__eq__":  # there, identity is a shortcut
            for read in uses.compared:
                if read is None or _is_copied(_compared_value(function, read)):
                    _refuse_use(f"code of {function.__qualname__} that compares which objects values are")
        self._used |= uses.names
        for constant in uses.constants:
            _refuse_unordered(constant)
        for read in reads(code):
            if read.name in function.__globals__:
                value = look_up(function.__globals__, read)[0]
                if read.name in uses.names or not isinstance(value, set | frozenset):
                    self.visit(value)
            elif hasattr(builtins, read.name):
                self.visit(getattr(builtins, read.name))
        for item in imports(code):
            self._visit_import(function, item)

    def _visit_import(self, function: FunctionType, item: Import) -> None:
        package = function.__globals__.get("__package__") or ""
        name = resolve_name("." * item.level + item.module, package) if item.level else item.module
        module = sys.modules.get(name)
        if module is not None and not item.names:
            self.visit(sys.modules[name.partition(".")[0]])
            self.visit(module)
        for taken in item.names or self._taken:
            if hasattr(module, taken):
                self.visit(getattr(module, taken))
            elif item.names and not self._follows(name):
                self._require_pure(name, taken)
        if module is None and not item.names and not self._follows(name):
            self._require_pure(name, "")

    def _visit_class(self, cls: type) -> None:
        if not self._follows(cls.__module__):
            self._require_pure(cls.__module__, cls.__qualname__, cls)
            return
        self._visit_bases(cls)
        self._visit_bases(type(cls))
        for space in [vars(base) for base in cls.__mro__ if self._follows(base.__module__)]:
            for name in ("__new__", "__init__", "__post_init__"):
                self.visit(space.get(name))

    def _visit_bases(self, cls: type) -> None:
        """Note the followed bases of `cls` and inspect the others."""
        for base in cls.__mro__:
            if self._follows(base.__module__):
                self._spaces[id(base)] = vars(base)
                for other in base.__bases__:
                    if not self._follows(other.__module__):
                        self._require_pure(other.__module__, other.__qualname__, other)

    def _visit_bound(self, value: Any) -> None:
        if isinstance(value, partial):
            for item in (value.func, value.args, value.keywords):
                self.visit(item)
        elif value.__self__ is None or isinstance(value.__self__, ModuleType):
            self._visit_native(value)
        else:
            self.visit(value.__self__)
            self._taken.add(value.__name__)
            self.visit(getattr(value, "__func__", None))

    def _visit_native(self, value: Any) -> None:
        """Inspect a native function by the module it claims; ufuncs compute, whatever they belong to."""
        owner = getattr(value, "__objclass__", None)
        module = getattr(value, "__module__", None) or getattr(
            getattr(value, "__self__", None), "__name__", None
        )
        if owner is not None:
            self.visit(owner)
        elif isinstance(module, str) and not self._follows(module) and type(value).__name__ != "ufunc":
            self._require_pure(module, str(getattr(value, "__qualname__", value.__name__)))

    def _visit_instance(self, value: Any) -> None:
        cls = type(value)
        if is_native_type(cls):
            self._visit_native(value)
            return
        if isinstance(value, _GETTERS):
            texts = [text for text in value.__reduce__()[1] if isinstance(text, str)]
            self._taken.update(part for text in texts for part in text.split("."))
        if self._follows(cls.__module__):
            self._visit_bases(cls)
            self._spaces[id(value)] = {**getattr(value, "__dict__", {}), **_slots(value)}
            return
        self._require_pure(cls.__module__, cls.__qualname__, cls)
        if cls is _LRU_CACHE:
            value.cache_clear()
        for name in _WRAPPED:
            self.visit(getattr(value, name, None))

    def _follows(self, module: str) -> bool:
        return origin_of(module, self._described) == "followed"

    def _require_pure(self, module: str, name: str, cls: type | None = None) -> None:
        package = module.partition(".")[0]
        self._packages.add(package)
        if package in self._described or is_pure(module, name):
            return
        if cls is not None and (_is_number(cls) or issubclass(cls, BaseException)):
            return
        _refuse(module, name)


def _is_number(cls: type) -> bool:
    """Return True if `cls` is one of numpy's number types, which are in modules of many names."""
    return any((base.__module__, base.__qualname__) == ("numpy", "generic") for base in cls.__mro__)


def _texts(code: CodeType) -> set[str]:
    """Return the constant texts of `code`, and of code nested in it, that may be names of attributes."""
    found: set[str] = set()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _texts(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            found.add(constant)
    return found


def _slots(value: object) -> dict[str, object]:
    found = {}
    for base in type(value).__mro__:
        for name, item in vars(base).items():
            if isinstance(item, MemberDescriptorType) and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def _compared_value(function: FunctionType, read: GlobalRead) -> object:
    """Return the value of a global or free variable of a function, and of what is taken from it; a descriptor
    is taken for its value."""
    free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    value = _content(free[read.name]) if read.name in free else function.__globals__.get(read.name)
    for name in read.attributes:
        value = getattr_static(value, name, None)
    return value


def _is_copied(value: object) -> bool:
    """Return True for values of which equal ones may be the same object or not; an enum has one of each."""
    return isinstance(value, _COPIED) and not isinstance(value, bool | Enum)


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is still empty
        return None


def _refuse_unordered(value: object) -> None:
    """Refuse a set whose order may differ from that of an equal set in another process."""
    if not isinstance(value, set | frozenset) or len(value) < 2:
        return
    try:
        is_sorted = list(value) == sorted(value)
    except TypeError:
        is_sorted = False
    if not is_sorted:
        _refuse_use("a set of which code may tell the order")


def _refuse_use(what: str) -> None:
    raise Unfingerprintable(
        what, "its result is stored, and no key says this; use a tuple, or compare with =="
    )


def _refuse(module: str, name: str) -> None:
    raise Unfingerprintable(
        f"code that may read external state: {module}.{name}",
        "its result is stored, and no key says what it read; read it before, and hold it as an attribute",
    )
