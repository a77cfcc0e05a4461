"""The canonical encoding of PyTensor's own values: Types, Ops, constants, frozen graphs, and their
attributes.

They are written with tags of their own among the values of cachegraph/fingerprint/encoder.py (`uint`,
`bytes`, `text`):

    value    := ... | 'O' bytes(op) | 'Y' bytes(type) | 'K' bytes(constant) | 'G' bytes(graph: see graphs.py)
              | 'J' bytes(object) | 'H' bytes(function) | 'Z' bytes(value(the parts of a partial))
              | 'Q' bytes(value(dict)) | 'U' bytes(value(tuple)) | 'V' bytes(value(tuple))
                                                        of a frozendict, an ordered set, a union of classes
              | 'A' bytes(value((linker, query asked for, query)))        of a Mode
    op       := class uint(n) (text(name) value)*n                 its attributes, sorted by name
    object   := class uint(n) (text(name) value)*n                 of another class of PyTensor or PyMC
              | '+' object | '-' text(module:name) origin          of a rewriter, under its name in a module
    function := text(module) text(qualname) origin uint(line) bytes(instructions) value(defaults)*2
                value(free variables)                              of a release
    type     := class ('t' text(dtype) uint(ndim) (uint(0) | uint(extent + 1))*ndim
                | 'v' value(attributes by name))
    constant := bytes(type) ('a' layout value(array) | 'v' value(data))
    class    := 'r' text(module) text(qualname) origin | 'c' bytes(encoding of the class, by its code)
    layout   := 'C' | 'F' | 'A' uint(ndim) value(stride)*ndim     the array's layout as numba sees it

An Op is identified by its class and all of its attributes, not only `__props__` (attributes.py). A class
of a release is identified by its name and the release; any other class by its code
(cachegraph/fingerprint/classes.py).
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Callable, Collection
from enum import Enum
from functools import lru_cache, partial
from types import CodeType, FunctionType, UnionType
from typing import Any

import numpy as np
from pytensor.compile.mode import Mode, optdb
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import AbstractFunctionGraph, FrozenFunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import FromFunctionNodeRewriter
from pytensor.graph.type import Type
from pytensor.misc.frozendict import frozendict
from pytensor.misc.ordered_set import OrderedSet
from pytensor.tensor.type import DenseTensorType, TensorType

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoder import Encoder
from cachegraph.fingerprint.encoding import ValueEncoder, encode
from cachegraph.fingerprint.origin import is_importable, origin_of, write_origin
from cachegraph.fingerprint.primitives import HASH_VERSION, pack_text, pack_uint, prefixed, strong_digest
from cachegraph.pytensor.describe.attributes import (
    HEAP_TYPE,
    attributes_of,
    is_of_host,
    is_user_op,
    name_of,
    state_of,
)
from cachegraph.pytensor.describe.held_arrays import layout
from cachegraph.pytensor.describe.host_packages import HOST_PACKAGES

_KNOWN = (*HOST_PACKAGES, "numpy", "scipy", "numba")
"""The packages whose code reads no names and tags of users."""

_VERSION = bytes((HASH_VERSION,))
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))
_CONTAINERS = frozenset((tuple, list, dict, set, frozenset))
_IMMUTABLE = (np.generic, type(None), bool, int, float, complex, str, slice)

Writer = Callable[[Any, "EncodingContext"], bytes]


class EncodingContext:
    """The state of one description while it is written: what was encoded so far, and what may change later.

    `described` are the packages that another part of the key describes. `user_ops` are the Ops, at all
    depths, that PyTensor and PyMC do not define, by their encodings.
    """

    def __init__(self, described: Collection[str], encode_frozen: Writer) -> None:
        """`encode_frozen` encodes the graphs that Ops hold (graphs.py)."""
        self.described = tuple(described)
        self.encode_frozen = encode_frozen
        self.classes: dict[type, bytes] = {}
        self.modules: set[str] = set()
        self.user_ops: dict[bytes, Any] = {}
        self.arrays: list[tuple[bytes, np.ndarray[Any, Any]]] = []
        """The data of encoded constants, with its names; whoever made an array may overwrite it."""
        self.coded: list[tuple[bytes, Any, Writer]] = []
        """Items that may mean another thing next time, each with its encoding and its writer."""
        self.rewriters: list[Any] = []
        """The encoded rewriters that contain code of others."""
        self._ops: dict[int, tuple[Any, bytes]] = {}
        self._of_host: dict[type, bytes] = {}
        """The rows of the classes of PyTensor and PyMC that were asked for, by their release."""
        self.code = 0
        """How often code was encoded: an item that holds code may mean another thing next time."""
        self.foreign = 0
        """How often something was encoded that may run code of neither PyTensor nor PyMC."""

    def op(self, op: Any) -> bytes:
        """Return the encoding of `op`, written once per description."""
        known = self._ops.get(id(op))
        if known is None:
            code = self.code
            known = self._ops[id(op)] = op, encode_op(op, self)
            if self.code != code:
                self.coded.append((known[1], op, encode_op))
        return known[1]

    @property
    def by_others(self) -> bool:
        """True if code by others than PyTensor and PyMC may run; it reaches what these do not use."""
        return bool(self.foreign or self.code)

    @property
    def user_classes(self) -> tuple[type, ...]:
        """The classes described by code, in the order in which they were encoded; of equal code the first."""
        first: dict[bytes, type] = {}
        for cls, row in self.classes.items():
            first.setdefault(row, cls)
        return tuple(first.values())

    def class_row(self, cls: type) -> bytes:
        """Return the row of `cls`: by its release, or by its code, written once per description."""
        known = self._of_host.get(cls)
        if known is not None:
            return known
        self.modules.add(cls.__module__)
        is_foreign = not is_of_host(cls)
        self.foreign += is_foreign
        released = _release_row(cls, self.described)
        if released is not None:
            if not is_foreign:
                self._of_host[cls] = released
            return released
        self.code += 1
        found = self.classes.get(cls)
        if found is None:
            found = self.classes[cls] = _code_row(cls, self)
            self.coded.append((found, cls, _code_row))
        return found

    def array(self, data: np.ndarray[Any, Any]) -> bytes:
        """Return the encoding of a constant's array and of its layout."""
        written = layout(data) + encode(data)
        self.arrays.append((strong_digest(written), data))
        return written


class ObjectEncoder(ValueEncoder):
    """An encoder of values among which may be PyTensor's."""

    __slots__ = ("context",)

    def __init__(self, context: EncodingContext) -> None:
        super().__init__(context.described)
        self.context = context

    def value(self, value: Any) -> None:
        """Write `value`; raises Unfingerprintable if it, or anything in it, has no encoding."""
        cls: type = type(value)
        kind = _kind_of(cls)
        if kind is None or (kind is _FUNCTION and not is_released(value, self.context.described)):
            self.context.foreign += cls not in _PLAIN and cls not in _CONTAINERS and _is_foreign(value)
            super().value(value)
            return
        tag, write = kind
        self.tag(tag)
        try:
            self.bytes(write(value, self.context))
        except RecursionError:
            raise Unfingerprintable(
                name_of(type(value)), "the Python stack ran out; nest it less deeply"
            ) from None

    def definition(self, value: Any, write: Callable[[Encoder, Any], None]) -> None:
        """Write a value that is described by code, and count it."""
        self.context.code += 1
        super().definition(value, write)


def encode_value(value: object, context: EncodingContext) -> bytes:
    """Return the encoding of `value`, which may contain PyTensor's values; raises Unfingerprintable."""
    encoder = ObjectEncoder(context)
    encoder.value(value)
    return encoder.encoding


def encode_type(type_: Any, context: EncodingContext) -> bytes:
    """Return the encoding of a Type; raises Unfingerprintable."""
    row = context.class_row(type(type_))
    if type(type_) is TensorType or type(type_) is DenseTensorType:
        return row + _tensor_type(type_.dtype, type_.shape)
    # In a user's Type the name may decide something.
    state = {
        name: value for name, value in vars(type_).items() if name != "name" or not is_of_host(type(type_))
    }
    return b"".join((row, b"v", encode_value(state, context)))


@lru_cache(maxsize=4096)
def _tensor_type(dtype: str, shape: tuple[int | None, ...]) -> bytes:
    extents = (b"\0" if extent is None else pack_uint(extent + 1) for extent in shape)
    return b"".join((b"t", prefixed(dtype.encode()), pack_uint(len(shape)), *extents))


def encode_op(op: Any, context: EncodingContext) -> bytes:
    """Return the encoding of an Op, its class and its attributes; raises Unfingerprintable, with the path."""
    try:
        encoding = _encode_plainly(op, context) or _encode_object(op, context)
    except Unfingerprintable as error:
        error.inside(f"op {type(op).__qualname__}")
        raise
    if is_user_op(op):
        context.user_ops.setdefault(encoding, op)
    return encoding


def _encode_plainly(op: Any, context: EncodingContext) -> bytes | None:
    """Return what `_encode_object` does, in a third of the time, for a release's Op that holds plain values
    and Ops; None for any other."""
    cls: type = type(op)
    left_out, slots = attributes_of(cls)
    if slots or not is_class_of_release(cls, context.described):
        return None
    state = op.__dict__
    names = [name for name in sorted(state) if name not in left_out]
    parts = [_VERSION, context.class_row(cls), pack_uint(len(names))]
    for name in names:
        value = state[name]
        kind: type = type(value)
        if kind in _PLAIN or _is_plain(value):
            parts.append(_plain_attribute(name, marshal.dumps(value, 2)))
        elif _kind_of(kind) is _OP:
            parts += (pack_text(name), b"O", prefixed(context.op(value)))
        elif kind is frozendict and _is_plain(value._dict):
            parts += (pack_text(name), b"Q", prefixed(encode(value._dict)))
        else:
            return None
    return b"".join(parts)


@lru_cache(maxsize=10_000)
def _plain_attribute(name: str, written: bytes) -> bytes:
    """Return an attribute with a plain value, which marshal has written: equal numbers may differ."""
    return pack_text(name) + encode(marshal.loads(written)).removeprefix(_VERSION)


def _is_plain(value: Any) -> bool:
    """Return True if marshal writes all of `value`; of arrays and numpy's numbers it writes bits alone."""
    cls = type(value)
    if cls not in _CONTAINERS:
        return cls in _PLAIN
    items = (*value, *value.values()) if cls is dict else value
    return _PLAIN.issuperset(map(type, items)) or all(map(_is_plain, items))


def encode_constant(constant: Any, context: EncodingContext) -> bytes:
    """Return the encoding of a constant: type, bits, an array's layout; raises Unfingerprintable."""
    data = constant.data
    type_ = prefixed(encode_type(constant.type, context))
    if type(data) is np.ndarray:
        return b"".join((type_, b"a", context.array(data)))
    code = context.code
    written = b"".join((type_, b"v", encode_value(_plain(data, context), context)))
    if context.code != code:
        context.coded.append((written, constant, encode_constant))
    return written


def _plain(data: Any, context: EncodingContext) -> Any:
    """Return a constant's data as plain values: sparse matrices and generators by their parts."""
    if hasattr(data, "indptr") and type(data).__module__.startswith("scipy.sparse"):
        for array in (data.data, data.indices, data.indptr):
            context.array(array)
        parts = (data.shape, data.data, data.indices, data.indptr, bool(data.has_sorted_indices))
        return "sparse", type(data).__name__, data.format, *parts
    context.code += not isinstance(data, _IMMUTABLE)  # it may change before the next time
    if type(data) is np.random.Generator:
        return "generator", data.bit_generator.state
    return data


def _encode_object(value: Any, context: EncodingContext) -> bytes:
    row = context.class_row(type(value))
    encoder = ObjectEncoder(context)
    encoder.tag(row)
    if row.startswith(b"c"):  # then code describes its attributes as well
        encoder.definition(value, _write_attributes)
    else:
        _write_attributes(encoder, value)
    return encoder.encoding


def _write_attributes(encoder: Encoder, value: Any) -> None:
    state = state_of(value)
    encoder.uint(len(state))
    for name in sorted(state):
        encoder.text(name)
        try:
            encoder.value(state[name])
        except Unfingerprintable as error:
            error.inside(f".{name}")
            raise


@lru_cache(maxsize=4096)
def _release_row(cls: type, described: tuple[str, ...]) -> bytes | None:
    """Return the row of a class that its name and origin describe; None if its code must."""
    if not is_class_of_release(cls, described):
        return None
    module = cls.__module__
    origin = release_row_of_module(module, described).removeprefix(_VERSION)
    return b"".join((_VERSION, b"r", pack_text(module), pack_text(cls.__qualname__), origin))


def _code_row(cls: type, context: EncodingContext) -> bytes:
    return b"c" + prefixed(encode_value(cls, context))


@lru_cache(maxsize=4096)
def _kind_of(cls: type) -> tuple[bytes, Writer] | None:
    """Return the tag and the writer of instances of `cls` if they are PyTensor's, else None."""
    bases = cls.__mro__  # issubclass would have abstract classes ask all of their subclasses
    for base, kind in _KINDS:
        if base in bases:
            return kind
    plain = not {type, Enum, tuple}.isdisjoint(bases) or "__dataclass_params__" in vars(cls)
    if plain or not is_of_host(cls) or not cls.__flags__ & HEAP_TYPE:
        return None
    return _OBJECT


def is_op_class(cls: type) -> bool:
    """Return True if instances of `cls` are Ops."""
    return _kind_of(cls) is _OP


@lru_cache(maxsize=4096)
def is_class_of_release(cls: type, described: tuple[str, ...]) -> bool:
    """Return True if the name of `cls` describes it."""
    return is_importable(cls) and origin_of(cls.__module__, described) != "followed"


def is_object_of_release(cls: type, described: tuple[str, ...]) -> bool:
    """Return True if the attributes of an instance of `cls`, and the name of that class, describe it."""
    return _kind_of(cls) is _OBJECT and is_class_of_release(cls, described)


def _refuse_variable(value: Any, context: EncodingContext) -> bytes:
    raise Unfingerprintable(name_of(type(value)), "a variable means nothing without its graph; hold none")


def _encode_mode(value: Any, context: EncodingContext) -> bytes:
    """Encode a Mode that an Op holds; the databases that it queries are in the key of every function."""
    if type(value) is not Mode or value.optdb is not optdb:
        raise Unfingerprintable(name_of(type(value)), "let Ops hold plain Modes of PyTensor's own database")
    return encode_value((value.linker, value.provided_optimizer, value._optimizer), context)


def _encode_partial(value: Any, context: EncodingContext) -> bytes:
    if vars(value):
        raise Unfingerprintable("functools.partial with attributes", "set none on it")
    return encode_value((value.func, value.args, value.keywords), context)


def _encode_rewriter(value: Any, context: EncodingContext) -> bytes:
    """Encode a rewriter made of a function; by name alone if a release's module holds it by that name."""
    function = value.fn
    released = type(function) is FunctionType and is_released(function, context.described)
    if released and getattr(sys.modules[function.__module__], function.__name__, None) is value:
        name = f"{function.__module__}:{function.__name__}"
        return b"-" + prefixed(name.encode()) + release_row_of_module(function.__module__, context.described)
    return b"+" + _encode_object(value, context)


@lru_cache(maxsize=1024)
def release_row_of_module(module: str, described: tuple[str, ...]) -> bytes:
    """Return the origin of a module of a release: its package, and which release of it."""
    encoder = ValueEncoder(described)
    write_origin(encoder, module, described)
    return encoder.encoding


def _encode_released_function(value: Any, context: EncodingContext) -> bytes:
    """Encode a function of a release by its position in the source and its free variables."""
    code = value.__code__
    encoder = ObjectEncoder(context)
    encoder.text(value.__module__)
    encoder.text(value.__qualname__)
    write_origin(encoder, value.__module__, context.described)
    encoder.uint(code.co_firstlineno)
    encoder.bytes(code.co_code)
    encoder.value(value.__defaults__)
    encoder.value(value.__kwdefaults__)
    encoder.value([cell.cell_contents for cell in value.__closure__ or ()])
    return encoder.encoding


def is_released(function: Any, described: tuple[str, ...]) -> bool:
    """Return True if a release's module defined `function`; a wrapper copies the name, not the globals."""
    module = function.__globals__.get("__name__")
    if module != function.__module__ or not isinstance(module, str):
        return False
    space = space_of_release(module, described)
    return space is not None and (space is function.__globals__ or _is_copied_from(function, space))


def space_of_release(module: str, described: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the names of a loaded module of a host's release; None if it is none."""
    if module not in sys.modules or not _is_release(module, described):
        return None
    space = vars(sys.modules[module])
    return space if space.get("__name__") == module else None


def _is_copied_from(function: FunctionType, space: dict[str, Any]) -> bool:
    """Return True if `function` came in a pickle that holds functions by value, and `space` has its definer.

    It then has globals of its own, but the code of a function that its definer contains.
    """
    copied = {name: item for name, item in function.__globals__.items() if not name.startswith("__")}
    if not all(name in space and space[name] is item for name, item in copied.items()):
        return False
    path, _, _ = function.__qualname__.partition(".<locals>.")
    first, *names = path.split(".")
    definer = space.get(first)
    for name in names:
        definer = getattr(definer, "__dict__", {}).get(name)
    definer = getattr(definer, "__func__", definer)
    return isinstance(definer, FunctionType) and _is_within(function.__code__, definer.__code__)


def _is_within(code: CodeType, outer: CodeType) -> bool:
    inner = [constant for constant in outer.co_consts if isinstance(constant, CodeType)]
    return code in inner or any(_is_within(code, each) for each in inner)


def _is_foreign(value: Any) -> bool:
    """Return True if a function, class or instance comes from none of the packages of `_KNOWN`."""
    kind = type(value).__module__
    if type(value) is FunctionType:
        kind = value.__globals__.get("__name__") or value.__module__
    told = (
        (getattr(value, "__module__", None) or kind) if callable(value) else kind
    )  # functools.wraps copies __module__
    return not all(isinstance(name, str) and is_module_of(_KNOWN, name) for name in (kind, told))


@lru_cache(maxsize=1024)
def is_module_of(packages: tuple[str, ...], module: str) -> bool:
    """Return True if `module` belongs to one of `packages` or to Python."""
    return module.partition(".")[0] in packages or origin_of(module, ()) == "python"


@lru_cache(maxsize=1024)
def _is_release(module: str, described: tuple[str, ...]) -> bool:
    return module.partition(".")[0] in HOST_PACKAGES and origin_of(module, described) != "followed"


_OBJECT: tuple[bytes, Writer] = (b"J", _encode_object)
_FUNCTION: tuple[bytes, Writer] = (b"H", _encode_released_function)
_OP: tuple[bytes, Writer] = (b"O", lambda op, context: context.op(op))
_KINDS: tuple[tuple[type, tuple[bytes, Writer]], ...] = (
    (Op, _OP),
    (Type, (b"Y", encode_type)),
    (Constant, (b"K", encode_constant)),
    (Variable, (b"", _refuse_variable)),
    (FrozenFunctionGraph, (b"G", lambda graph, context: context.encode_frozen(graph, context))),
    (AbstractFunctionGraph, (b"", _refuse_variable)),
    (Mode, (b"A", _encode_mode)),
    (frozendict, (b"Q", lambda value, context: encode_value(value._dict, context))),
    (OrderedSet, (b"U", lambda value, context: encode_value(tuple(value), context))),
    (UnionType, (b"V", lambda value, context: encode_value(value.__args__, context))),
    (FunctionType, _FUNCTION),
    (partial, (b"Z", _encode_partial)),
    (FromFunctionNodeRewriter, (b"J", _encode_rewriter)),
)
