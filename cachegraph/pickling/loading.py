"""The loading of pickles: what they may name, call and change. The format is in
cachegraph/pickling/__init__.py.

It extends the standard library's unpickler in Python, because the one in C does not show its calls.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import EnumType
from functools import partial
from typing import Any, ClassVar, TypeVar

from cachegraph.errors import CachegraphError
from cachegraph.named_tuples import NamedTuple
from cachegraph.pickling.calls import (
    CALLED,
    HELD,
    Check,
    of_array,
    state_of_array,
    state_of_dtype,
    state_of_partial,
)
from cachegraph.pickling.errors import InvalidPickle, UntrustedPickle
from cachegraph.pickling.large_arrays import ReadBlob, blob_content

EVERYTHING = ("*",)
"""Trust in everything, code included, for one's own pickles. As dangerous as pickle.loads."""

_WRITTEN = (
    *(pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.POP, pickle.POP_MARK, pickle.MEMOIZE),
    *(pickle.BINGET, pickle.LONG_BINGET, pickle.BINPERSID, pickle.STACK_GLOBAL, pickle.NONE, pickle.NEWTRUE),
    *(pickle.NEWFALSE, pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1, pickle.LONG4),
    *(pickle.BINFLOAT, pickle.SHORT_BINUNICODE, pickle.BINUNICODE, pickle.BINUNICODE8),
    *(pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.BINBYTES8, pickle.BYTEARRAY8, pickle.EMPTY_TUPLE),
    *(pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.TUPLE, pickle.EMPTY_LIST, pickle.APPEND),
    *(pickle.APPENDS, pickle.EMPTY_DICT, pickle.SETITEM, pickle.SETITEMS, pickle.EMPTY_SET, pickle.ADDITEMS),
    *(pickle.FROZENSET, pickle.REDUCE, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.BUILD),
)
"""The opcodes of protocol 5 that `dumps` writes. All others are refused."""

_Python: Any = pickle._Unpickler  # its stubs are incomplete
F = TypeVar("F", bound=Callable[..., Any])
Paths = Collection[tuple[str, str]]
_LARGEST = 1_000_000
_DEEPEST = 400
_REFERENCES_OF_NEW = 4  # the stack, the record, a local variable and the argument of `getrefcount`


def loads(
    content: bytes,
    trusted: Sequence[str],
    external: Sequence[object] = (),
    named: Paths = (),
    at_hand: Mapping[str, object] | None = None,
    read_blob: ReadBlob | None = None,
    declared: Paths = (),
) -> Any:
    """Return the value pickled in `content`; `external` and `at_hand` supply the objects that `dumps` left
    out.

    `trusted` lists packages or modules, with all below them. The pickle may also call the functions of
    `named`, and hold those whose import paths are `declared` as values. With EVERYTHING trusted, nothing is
    refused. Raises UntrustedPickle if the pickle names, calls or changes anything else; UnresolvedFunction if
    a declared function is not installed; MissingBlob if `read_blob` does not return the content of a large
    array; InvalidPickle for any other fault.
    """
    unpickler = _Unpickler(
        content, tuple(trusted), external, frozenset(named), at_hand or {}, read_blob, frozenset(declared)
    )
    try:
        found = unpickler.load()
        unpickler.check_end()
    except CachegraphError:
        raise
    except Exception as error:  # damaged bytes may make the classes that they name raise anything
        raise InvalidPickle(f"{type(error).__name__}: {error}") from error
    return found


class _Written(dict[int, Callable[[Any], None]]):
    """The handlers of the opcodes that `dumps` writes; all others are refused."""

    def __missing__(self, code: int) -> Callable[[Any], None]:
        raise InvalidPickle(f"the opcode {bytes((code,))!r}, which is not written")


class _Held(NamedTuple):
    """An immutable container: the `item`, its `size` without sharing, and its `depth`."""

    item: object
    size: int
    depth: int


class _Unpickler(_Python):  # type: ignore[misc]
    """An unpickler that calls only what a pickle may name, and changes only what it has made."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = _Written(
        (code[0], _Python.dispatch[code[0]]) for code in _WRITTEN
    )

    def __init__(
        self,
        content: bytes,
        trusted: tuple[str, ...],
        external: Sequence[object],
        named: frozenset[tuple[str, str]],
        at_hand: Mapping[str, object],
        read_blob: ReadBlob | None,
        declared: frozenset[tuple[str, str]],
    ) -> None:
        super().__init__(io.BytesIO(content), fix_imports=False)
        self._size = len(content)
        self._trusted = trusted
        self._external = external
        self._rebuilders = CALLED.keys() | HELD | named
        self._at_hand = at_hand
        self._read_blob = read_blob
        self._declared = declared
        # By id, and kept alive: an id must not be used twice.
        self._named: dict[int, object] = {}
        self._given: dict[int, object] = {}
        self._only_held: set[int] = set()
        self._checks: dict[int, Check] = {}
        self._empty_arrays: dict[int, object] = {}
        self._held: dict[int, _Held] = {}
        self._left = len(content)  # bytes that arrays may still copy

    def check_end(self) -> None:
        """Raise InvalidPickle if bytes follow the end of the pickle."""
        if self.read(1):
            raise InvalidPickle("more bytes after its end")

    def persistent_load(self, pid: object) -> object:
        """Return the external object, named object, imported function, or content of a large array that `pid`
        stands for."""
        if isinstance(pid, str) and pid in self._at_hand:
            found = self._at_hand[pid]
        elif isinstance(pid, tuple) and len(pid) == 3 and pid[0] == "import":
            found = self._function(*pid[1:])
        elif isinstance(pid, tuple) and len(pid) == 3 and pid[0] == "blob":
            return self._content(*pid[1:])
        elif isinstance(pid, int) and 0 <= pid < len(self._external):
            found = self._external[pid]
        else:
            raise InvalidPickle(f"external object {pid!r}, of {len(self._external)} that there are")
        self._given[id(found)] = found
        return found

    def _function(self, module: object, place: object) -> object:
        if not isinstance(module, str) or not isinstance(place, str):
            raise InvalidPickle(f"an import path that is none: {module!r}, {place!r}")
        if not self._trusts_everything and (module, place) not in self._declared:
            raise UntrustedPickle(module, place, self._trusted)
        from cachegraph.pickling.import_path import ImportPath, resolve  # few pickles hold functions

        return resolve(ImportPath(module, place))

    def _content(self, digest: object, is_read_only: object) -> bytes | bytearray:
        if not isinstance(digest, str):
            raise InvalidPickle(f"the digest of a blob that is none: {digest!r}")
        content = blob_content(self._read_blob, digest, "a pickle")
        return content if is_read_only is True else bytearray(content)

    def find_class(self, module: str, name: str) -> Any:
        """Return the class or function of that name, if pickles may name it."""
        found = self._found(module, name)
        self._named[id(found)] = found
        if (module, name) in HELD:
            self._only_held.add(id(found))
        if (module, name) in CALLED:
            self._checks[id(found)] = CALLED[module, name]
        return found

    def _found(self, module: str, name: str) -> Any:
        if (module, name) in self._rebuilders or self._trusts_everything:
            return super().find_class(module, name)
        # A dotted name could lead from a trusted module into whatever that module imported.
        if self._is_trusted(module) and "." not in name:
            found = super().find_class(module, name)
            loads = isinstance(found, type) or getattr(found, "_rebuilds_pickled", False)
            if loads and self._is_trusted(getattr(found, "__module__", "")):
                return found
        raise UntrustedPickle(module, name, self._trusted)

    def _is_trusted(self, module: str) -> bool:
        return any(f"{module}.".startswith(f"{package}.") for package in self._trusted)

    @property
    def _trusts_everything(self) -> bool:
        return self._trusted == EVERYTHING

    def _check_called(self, function: object, arguments: object) -> None:
        """Refuse calls of objects that the pickle was given or made, and arguments that fail the check of the
        function."""
        if not isinstance(arguments, tuple):
            raise InvalidPickle(f"a call with {type(arguments).__name__} in the place of its arguments")
        if self._trusts_everything:
            return
        if id(function) not in self._named or id(function) in self._only_held:
            raise UntrustedPickle("a call of", f"an object of {type(function).__qualname__}", self._trusted)
        check = self._checks.get(id(function))
        if check is not None:
            check(arguments)

    def _check_changed(self, item: object) -> None:
        """Refuse changes of objects that the pickle was given or named, rather than made."""
        if (id(item) in self._given or id(item) in self._named) and not self._trusts_everything:
            raise UntrustedPickle("a change of", f"an object of {type(item).__qualname__}", self._trusted)

    def _reduce(self) -> None:
        function, arguments = self.stack[-2:]
        self._check_called(function, arguments)
        self._load(pickle.REDUCE)
        self._note(arguments)
        made = self.stack[-1]
        if self._checks.get(id(function)) is of_array:
            self._empty_arrays[id(made)] = made
        is_rebuilt = not isinstance(function, type) and hasattr(function, "_rebuilds_pickled")
        if is_rebuilt or isinstance(function, EnumType):
            self._given[id(made)] = made  # interned: it may have existed before

    def _make(self) -> None:
        self._check_class(*self.stack[-2:])
        arguments = self.stack[-1]
        self._load(pickle.NEWOBJ)
        self._note(arguments)
        self._note_if_shared()

    def _make_with_keywords(self) -> None:
        self._check_class(*self.stack[-3:-1])
        arguments = self.stack[-2]
        self._load(pickle.NEWOBJ_EX)
        self._note(arguments)
        self._note_if_shared()

    def _note_if_shared(self) -> None:
        """Note an instance that others hold too, because its class keeps its instances."""
        made = self.stack[-1]
        if sys.getrefcount(made) > _REFERENCES_OF_NEW:
            self._given[id(made)] = made

    def _check_class(self, cls: object, arguments: object) -> None:
        """Refuse to make an instance, by `__new__`, of anything but a trusted class."""
        self._check_called(cls, arguments)
        if not isinstance(cls, type) or (
            (id(cls) in self._checks or isinstance(cls, EnumType)) and not self._trusts_everything
        ):
            raise UntrustedPickle("an instance of", getattr(cls, "__qualname__", ""), self._trusted)

    def _build(self) -> None:
        made, state = self.stack[-2:]
        self._check_changed(made)
        if not self._trusts_everything:
            self._check_state(made, state)
        self._load(pickle.BUILD)

    def _check_state(self, made: Any, state: object) -> None:
        if isinstance(made, partial):
            state_of_partial(made, state)
        elif id(made) in self._empty_arrays:
            self._left -= state_of_array(state)
            # An array's memory may be shared by now, so its content is set only once.
            self._given[id(made)] = self._empty_arrays.pop(id(made))
        elif type(made).__module__.partition(".")[0] == "numpy":
            state_of_dtype(made, state)
        if self._left < 0:
            raise InvalidPickle("arrays that hold more than the pickle does")

    def _note(self, parts: Iterable[object]) -> None:
        """Record depth and unshared size of the object on the stack, made of `parts`; refuse those that are
        too large.

        Hashing and comparing visit all of it, and freeing it recurses: a few bytes could make that take
        forever.
        """
        held = [self._held[id(part)] for part in parts if id(part) in self._held]
        size = 1 + sum(part.size for part in held)
        depth = 1 + max((part.depth for part in held), default=0)
        is_bomb = size > max(_LARGEST, self._size) or depth > _DEEPEST
        if is_bomb and not self._trusts_everything:
            raise InvalidPickle(f"tuples in each other, {depth} deep, {size} in all")
        item = self.stack[-1]
        self._held[id(item)] = _Held(item, size, depth)

    def _make_bytearray(self) -> None:
        (size,) = struct.unpack("<Q", self.read(8))
        if size > self._size:
            raise InvalidPickle(f"{size} bytes within {self._size}")
        self.append(bytearray(self.read(size)))

    def _begin(self) -> None:
        version = self.read(1)
        if version != b"\x05":
            raise InvalidPickle(f"protocol {version.hex()}, not 5")

    def _load(self, code: bytes) -> None:
        _Python.dispatch[code[0]](self)

    dispatch[pickle.PROTO[0]] = _begin
    dispatch[pickle.REDUCE[0]] = _reduce
    dispatch[pickle.NEWOBJ[0]] = _make
    dispatch[pickle.NEWOBJ_EX[0]] = _make_with_keywords
    dispatch[pickle.BUILD[0]] = _build
    dispatch[pickle.BYTEARRAY8[0]] = _make_bytearray


def _changing(code: bytes, depth: int) -> Callable[[_Unpickler], None]:
    """Return the handler of `code`, which changes the object `depth` below the top of the stack, or below its
    mark."""

    def change(unpickler: _Unpickler) -> None:
        stack = unpickler.stack if depth else unpickler.metastack[-1]
        unpickler._check_changed(stack[-1 - depth])
        unpickler._load(code)

    return change


def _holding(code: bytes) -> Callable[[_Unpickler], None]:
    """Return the handler of `code`, which makes a tuple or a frozenset."""

    def make(unpickler: _Unpickler) -> None:
        unpickler._load(code)
        unpickler._note(unpickler.stack[-1])

    return make


for _code, _depth in (
    (pickle.APPEND, 1),
    (pickle.SETITEM, 2),
    (pickle.APPENDS, 0),
    (pickle.SETITEMS, 0),
    (pickle.ADDITEMS, 0),
):
    _Unpickler.dispatch[_code[0]] = _changing(_code, _depth)
for _code in (pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.TUPLE, pickle.FROZENSET):
    _Unpickler.dispatch[_code[0]] = _holding(_code)
