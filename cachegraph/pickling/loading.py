"""How pickles are loaded: what they may name, call and change. See cachegraph/pickling/__init__.py for the format.

The unpickler is the one that the standard library has in Python: the one in C lets nobody see what is called.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from cachegraph.errors import CachegraphError
from cachegraph.large_arrays import ReadBlob, blob_content
from cachegraph.pickling.errors import InvalidPickle, UntrustedPickle

EVERYTHING = ("*",)
"""What who loads trusts, if he wrote the pickle himself: code too. As dangerous as pickle.loads."""

_NUMPY = frozenset(
    (module, name)
    for root in ("numpy.core", "numpy._core")
    for module, name in (
        (f"{root}.multiarray", "_reconstruct"),
        (f"{root}.multiarray", "scalar"),
        (f"{root}.numeric", "_frombuffer"),
    )
) | {("numpy", "ndarray"), ("numpy", "dtype")}
_PYTHON = frozenset(
    ("builtins", name) for name in ("frozenset", "set", "slice", "complex", "range", "bytearray")
) | {("functools", "partial")}

_Python: Any = pickle._Unpickler  # of which the stubs say less than there is
Paths = Collection[tuple[str, str]]


def loads(
    content: bytes,
    trusted: Sequence[str],
    external: Sequence[object] = (),
    named: Paths = (),
    at_hand: Mapping[str, object] | None = None,
    read_blob: ReadBlob | None = None,
    declared: Paths = (),
) -> Any:
    """Return what `content` holds, with the objects of `external`, and those `at_hand` by name, in the places of those that
    `dumps` left out.

    `named` are functions that it may call besides; `declared` the import paths of functions that it may hold as values.
    Raises UntrustedPickle if it names anything outside `trusted` (packages or modules, with all below them), or a
    function whose import path is not among `declared`, or calls or changes what it may not; UnresolvedFunction if a
    function that is declared is not installed; MissingBlob if `read_blob`, which a Cache has, does not give what a large
    array holds; InvalidPickle for anything else that is wrong with it. With EVERYTHING
    trusted, nothing is refused.
    """
    unpickler = _Unpickler(
        content, tuple(trusted), external, frozenset(named), at_hand or {}, read_blob, frozenset(declared)
    )
    try:
        return unpickler.load()
    except CachegraphError:
        raise
    except Exception as error:  # whatever damaged bytes make the classes that they name raise
        raise InvalidPickle(f"{type(error).__name__}: {error}") from error


class _Unpickler(_Python):  # type: ignore[misc]
    """Calls nothing but what a pickle may name, and changes nothing but what it has made."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Python.dispatch)

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
        self._rebuilders = _NUMPY | _PYTHON | named
        self._at_hand = at_hand
        self._read_blob = read_blob
        self._declared = declared
        # By id, and kept: an id must not be used twice.
        self._named: dict[int, object] = {}
        self._given: dict[int, object] = {}

    def persistent_load(self, pid: object) -> object:
        """The external object of that number or name, the function of that import path, or what a large array holds."""
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
        """What a pickle may call by that name."""
        found = self._found(module, name)
        self._named[id(found)] = found
        return found

    def _found(self, module: str, name: str) -> Any:
        if (module, name) in self._rebuilders or self._trusts_everything:
            return super().find_class(module, name)
        # A dotted name could walk from a trusted module into whatever that module imported.
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

    def _check_called(self, function: object) -> None:
        """Refuse to call what is no name in the pickle: what it was given, or made."""
        if id(function) not in self._named and not self._trusts_everything:
            raise UntrustedPickle("a call of", f"an object of {type(function).__qualname__}", self._trusted)

    def _check_changed(self, item: object) -> None:
        """Refuse to change what the pickle has not made: what it was given, and what is named."""
        if (id(item) in self._given or id(item) in self._named) and not self._trusts_everything:
            raise UntrustedPickle("a change of", f"an object of {type(item).__qualname__}", self._trusted)

    def _reduce(self) -> None:
        function = self.stack[-2]
        self._check_called(function)
        self._load(pickle.REDUCE)
        if not isinstance(function, type) and hasattr(function, "_rebuilds_pickled"):
            self._given[id(self.stack[-1])] = self.stack[-1]  # interned: it may have been there before

    def _make(self) -> None:
        self._check_called(self.stack[-2])
        self._load(pickle.NEWOBJ)

    def _make_with_keywords(self) -> None:
        self._check_called(self.stack[-3])
        self._load(pickle.NEWOBJ_EX)

    def _call_after_mark(self) -> None:
        self._check_called(self.stack[0])
        self._load(pickle.OBJ)

    def _make_bytearray(self) -> None:
        (size,) = struct.unpack("<Q", self.read(8))
        if size > self._size:
            raise InvalidPickle(f"{size} bytes within {self._size}")
        self.append(bytearray(self.read(size)))

    def _load(self, code: bytes) -> None:
        _Python.dispatch[code[0]](self)

    dispatch[pickle.REDUCE[0]] = _reduce
    dispatch[pickle.NEWOBJ[0]] = _make
    dispatch[pickle.NEWOBJ_EX[0]] = _make_with_keywords
    dispatch[pickle.OBJ[0]] = _call_after_mark
    dispatch[pickle.BYTEARRAY8[0]] = _make_bytearray


def _changing(code: bytes, depth: int) -> Callable[[_Unpickler], None]:
    """How the opcode `code` is done, which changes what lies `depth` below the top of the stack, or below its mark."""

    def change(unpickler: _Unpickler) -> None:
        stack = unpickler.stack if depth else unpickler.metastack[-1]
        unpickler._check_changed(stack[-1 - depth])
        unpickler._load(code)

    return change


for _code, _depth in (
    (pickle.BUILD, 1),
    (pickle.APPEND, 1),
    (pickle.SETITEM, 2),
    (pickle.APPENDS, 0),
    (pickle.SETITEMS, 0),
    (pickle.ADDITEMS, 0),
):
    _Unpickler.dispatch[_code[0]] = _changing(_code, _depth)
