"""The canonical encoding of frozen graphs, with user Ops described by their code.

The encoding of a graph (`uint`, `bytes` and `text` as in cachegraph/fingerprint/encoder.py):

    graph    := HASH_VERSION(1 byte) ENGINE_VERSION(1 byte) body
    body     := graph as in cachegraph/graph_codec.py
    type     := text(module) text(qualname) HASH_VERSION(1 byte) value(properties as a tuple)
    op       := text(module) text(qualname) HASH_VERSION(1 byte) uint(n) (text(name) property)*  of the engine
              | text("") text(class name) HASH_VERSION(1 byte) definition bytes(extensions)      of a user
    property := "v" value | "o" bytes(op) | "t" bytes(type) | "g" bytes(body)
    constant := "c" type-number bytes(value in C order) | "h" type-number digest | "d" type-number

Nodes come depth first from the outputs, or in the order of execution if that is part of the graph.
Types and Ops are numbered as they are met, equal ones once. Names of variables, tags and the
construction of the graph are not encoded. A constant of more than 32 elements is data ("d"): its
elements are not encoded, only its type and which of the constants it is. Graphs within Ops have no
data: the elements of all their constants are encoded ("c"), also where the graph around them uses the
same constants; above 64 KiB as the BLAKE2b-256 of the value ("h"), because keys are stored and would
contain the whole array.

A user Op is a definition (cachegraph/fingerprint/callables.py) in which an Op, a type or a graph may
take the place of a value:

    definition of an Op    := "O" value(class) value(order) uint(n) (text(name) value)*
    definition of a type   := "Y" bytes(type)
    graph                  := "G" bytes(body)
    filled container       := "S" text(name of its type)

The extensions after it are empty unless numba compiles the Op; then they are what others registered
with numba, and numba's settings (cachegraph/fingerprint/extensions.py). `order` is the order of the
names in the Op's dict. The names are those of its properties, then, sorted, of all other attributes;
attributes that begin with an underscore are left out if the Op has neither `infer_shape` nor
`numba_function`, because then nothing computed from them is stored. `infer_shape` and `numba_function`
may not read external state (cachegraph/fingerprint/external_state.py). So the code of the class, all
that it reads and the attributes of the instance are encoded; the module and the line numbers of the
class are not. A container at the top of a module that only `perform` reaches, and fills, is written
without its content: no result of `perform` is stored, and a compiled program calls it, so it finds the
content of that moment.

Version history
    1  first
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from types import FunctionType, MappingProxyType
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoder import Encoder
from cachegraph.fingerprint.encoding import ValueEncoder, encode
from cachegraph.fingerprint.primitives import prefixed, strong_digest
from cachegraph.graph_codec import GraphEncoder
from cachegraph.pickling.large_arrays import LARGE
from engine.errors import UndescribedOpError
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.generic import Generic
from engine.graph.op import Op, attributes
from engine.graph.props import is_of_engine
from engine.graph.represented import array_of_constant
from engine.graph.types import Type
from engine.graph.user_ops import DESCRIBED, find_user_ops, is_user_op, needs_python
from engine.graph.variables import Constant
from engine.tensor.elemwise import Elemwise

_UNDESCRIBED = "at hand "
"""The prefix of the names of Ops that have no description."""


class UserOps:
    """The user Ops of a graph, and Ops made of them, by the names that stored programs and graphs use
    for them.

    A name is the digest of the Op's description (BLAKE2b-256, in hexadecimal), the same in every
    process. If `is_open`, Ops without a description have names too, which only this process knows:
    nothing that uses them is stored.
    """

    def __init__(self, by_name: Mapping[str, Op] = MappingProxyType({}), is_open: bool = False) -> None:
        self.is_open = is_open
        self.by_name = dict(by_name)
        self._names: dict[Op, str] = {}
        self._encodings: dict[Op, bytes] = {}

    def encoding(self, op: Op) -> bytes:
        """Return the description of the user Op `op`, and add it under its name; raises
        Unfingerprintable."""
        found = self._encodings.get(op)
        if found is None:
            found = self._encodings[op] = _encode_user_op(op, self) + _encode_registrations(op)
            name = strong_digest(found).hex()
            _refuse_if_undecided(op, self.by_name.get(name, op), self)
            self._know(op, name)
        return found

    def name_of(self, op: Op) -> str:
        """Return the name of `op`; raises UndescribedOpError if it has none and this table is not open."""
        found = self._names.get(op)
        if found is not None:
            return found
        if not self.is_open:
            raise UndescribedOpError(op)
        return self._know(op, f"{_UNDESCRIBED}{len(self._names)}")

    def include(self, others: UserOps) -> None:
        """Add the Ops of `others` under their names there.

        Raises UndescribedOpError for a user Op that is not here yet, unless this table is open.
        """
        for name, op in others.by_name.items():
            if name not in self.by_name and is_user_op(op) and not self.is_open:
                raise UndescribedOpError(op)
            self._know(op, name)

    def know(self, op: Op, encoding: bytes) -> None:
        """Add `op`, whose description is `encoding`, under its name."""
        self._know(op, strong_digest(encoding).hex())

    def _know(self, op: Op, name: str) -> str:
        self.by_name.setdefault(name, op)
        return self._names.setdefault(op, name)


def check_ops(ops: Mapping[str, Op]) -> None:
    """Refuse (ValueError) Ops whose descriptions in this process do not have the digests that are their
    names."""
    for name, op in ops.items():
        if name.startswith(_UNDESCRIBED):
            continue
        try:
            found = strong_digest(_encode_op(op, UserOps())).hex()
        except Unfingerprintable as error:
            raise ValueError(f"op {op} cannot be described here: {error}") from error
        if found != name:
            raise ValueError(f"op {op}, or what its code reads, is another here")


def graph_body(graph: FrozenFunctionGraph, data: Collection[Constant], user_ops: UserOps) -> bytes:
    """Return the body of the encoding of `graph`, in which `data` is described by dtype and shape only;
    raises Unfingerprintable."""
    return _FrozenGraphEncoder(graph, data, user_ops).encoding()


def inner_body(graph: FrozenFunctionGraph, user_ops: UserOps) -> bytes:
    """Return the body of the encoding of a graph that an Op holds.

    It is kept with the graph unless the graph has user Ops, whose code may have changed by the next
    time.
    """
    if find_user_ops(graph):
        return graph_body(graph, (), user_ops)
    return graph.computed("inner_body", lambda graph: graph_body(graph, (), user_ops))


class _FrozenGraphEncoder(GraphEncoder):
    """The encoder of one frozen graph, in which the constants in `data` are described by dtype and
    shape only."""

    merges_constants = False

    def __init__(self, graph: FrozenFunctionGraph, data: Collection[Constant], user_ops: UserOps) -> None:
        super().__init__(graph.inputs, graph.nodes, graph.outputs)
        self.data = data
        self.user_ops = user_ops

    def encode_type(self, type_: Type) -> bytes:
        """Return the row of a type; raises Unfingerprintable."""
        return _encode_type(type_)

    def encode_op(self, op: Op) -> bytes:
        """Return the row of an Op; raises Unfingerprintable."""
        return _encode_op(op, self.user_ops)

    def encode_constant(self, constant: Constant) -> bytes:
        """Return the row of a constant: its type and its value, or what stands for that."""
        number = self.type_number(constant.type)
        if constant in self.data:
            return b"d" + number
        content = array_of_constant(constant).tobytes()
        if len(content) > LARGE:
            return b"h" + number + strong_digest(content)
        return b"c" + number + prefixed(content)


def _encode_type(type: Type) -> bytes:
    if isinstance(type, Generic):
        _refuse(type, "its values are pickled, and nothing that is stored is unpickled as it comes")
    if not is_of_engine(type):
        _refuse(type, "only types of the engine itself are described; those of others are not yet")
    return _encode_class(type) + encode(type.props())


def _encode_op(op: Op, user_ops: UserOps) -> bytes:
    try:
        return user_ops.encoding(op) if is_user_op(op) else _encode_engine_op(op, user_ops)
    except Unfingerprintable as error:
        error.inside(f"op {op}")
        raise


def _encode_engine_op(op: Op, user_ops: UserOps) -> bytes:
    """Return the encoding of an Op of the engine: its class and properties. Its code is in another part
    of the key."""
    properties = op.key_props() if op.__props__ is not None else _refuse(op, "declare __props__ for it")
    encoder = ValueEncoder()
    encoder.uint(len(properties))
    for name, value in properties.items():
        encoder.text(name)
        _write_property(encoder, name, value, user_ops)
    encoding = _encode_class(op) + encoder.encoding
    if isinstance(op, Elemwise) and needs_python(op):
        user_ops.know(op, encoding)  # a program may call it back as a whole
    return encoding


def _write_property(encoder: Encoder, name: str, value: object, user_ops: UserOps) -> None:
    if isinstance(value, Op):
        encoder.tag(b"o")
        encoder.bytes(_encode_op(value, user_ops))
    elif isinstance(value, Type):
        encoder.tag(b"t")
        encoder.bytes(_encode_type(value))
    elif isinstance(value, FrozenFunctionGraph):
        encoder.tag(b"g")
        encoder.bytes(inner_body(value, user_ops))
    else:
        encoder.tag(b"v")
        try:
            encoder.value(value)
        except Unfingerprintable as error:
            error.inside(f"props[{name!r}]")
            raise


def _encode_class(item: Op | Type) -> bytes:
    cls = type(item)
    return prefixed(cls.__module__.encode()) + prefixed(cls.__qualname__.encode())


def _encode_user_op(op: Op, user_ops: UserOps) -> bytes:
    """Return the encoding of a user Op: the code of its class, its properties, its attributes, and all
    that these read."""
    try:
        encoder = _CodeEncoder(user_ops, _state_of_perform(op, user_ops))
        encoder.value(op)
        _refuse_external_state(op)
    except (Unfingerprintable, UndescribedOpError):
        raise
    except Exception as error:
        # User code may raise anything while it is described: the Op then has no key.
        _refuse(op, f"describing it failed ({type(error).__name__}: {error})")
    return prefixed(b"") + prefixed(type(op).__name__.encode()) + encoder.encoding


def _refuse_external_state(op: Op) -> None:
    """Refuse `op` if its `infer_shape` or `numba_function`, whose results are stored, reads external
    state."""
    methods = [getattr(op, name) for name in ("infer_shape", "numba_function") if hasattr(op, name)]
    if not methods:
        return
    from cachegraph.fingerprint.external_state import refuse_external_state

    owner = getattr(methods[0], "__self__", op)
    shapes_of = getattr(owner, "shapes_of", None)
    try:
        refuse_external_state(
            [*methods, shapes_of], attributes(owner) if isinstance(owner, Op) else {}, DESCRIBED
        )
    except Unfingerprintable as error:
        error.inside(f"class {type(op).__name__}")
        raise


def _encode_registrations(op: Op) -> bytes:
    """Return the encoding of what others registered with numba, if numba compiles `op`.

    Code does not show which registered overloads it uses: numba finds them by the function that is
    called.
    """
    if not hasattr(op, "numba_function"):
        return prefixed(b"")
    from cachegraph.fingerprint.extensions import encode_extensions  # 3 ms, for Ops that few have

    return prefixed(encode_extensions(DESCRIBED))


class _CodeEncoder(ValueEncoder):
    """The encoder of everything that code reaches, Ops, types and graphs included; of the containers in
    `state`, only the types."""

    __slots__ = ("_state", "_user_ops")

    def __init__(self, user_ops: UserOps, state: list[object]) -> None:
        super().__init__(DESCRIBED)
        self._user_ops = user_ops
        self._state = frozenset(map(id, state))

    def value(self, value: Any) -> None:
        if id(value) in self._state:
            self.tag(b"S")
            self.text(type(value).__name__)
        elif isinstance(value, Op):
            self.definition(value, _write_op)
        elif isinstance(value, Type):
            self.tag(b"Y")
            self.bytes(_encode_type(value))
        elif isinstance(value, FrozenFunctionGraph):
            self.tag(b"G")
            self.bytes(inner_body(value, self._user_ops))
        else:
            super().value(value)


class _TrialEncoder(_CodeEncoder):
    """An encoder that leaves functions out, and counts how often it met each value."""

    __slots__ = ("_left_out", "met")

    def __init__(self, user_ops: UserOps, left_out: frozenset[FunctionType]) -> None:
        super().__init__(user_ops, [])
        self._left_out = left_out
        self.met: Counter[int] = Counter()

    def value(self, value: Any) -> None:
        self.met[id(value)] += 1
        if not (isinstance(value, FunctionType) and value in self._left_out):
            super().value(value)


def _state_of_perform(op: Op, user_ops: UserOps) -> list[object]:
    from engine.compiling.perform_state import state_of_perform  # only user Ops need it

    def trial(op: Op, left_out: frozenset[FunctionType]) -> tuple[bytes, Counter[int]]:
        encoder = _TrialEncoder(user_ops, left_out)
        encoder.value(op)
        return encoder.encoding, encoder.met

    return state_of_perform(op, trial)


def _is_private_state(op: Op, name: str) -> bool:
    """Return True if the attribute is private state that is not part of the Op's identity.

    No attribute is, if results of the Op's code are stored (lengths, compiled code): that code may read
    all of them.
    """
    return _is_only_run(op) and name.startswith("_")


def _is_only_run(op: Op) -> bool:
    return not hasattr(op, "infer_shape") and not hasattr(op, "numba_function")


def _refuse_if_undecided(op: Op, other: Op, user_ops: UserOps) -> None:
    """Refuse `op` if `other` has the same encoding but other state: a stored program could not tell them
    apart."""
    if other is op:
        return
    ours, others = (
        {name: value for name, value in _other_attributes(one).items() if _is_private_state(op, name)}
        for one in (op, other)
    )
    if ours.keys() != others.keys() or not all(map(_alike, ours.values(), others.values())):
        _refuse(
            op, "another of the graph differs from it in private attributes alone; name them in __props__"
        )
    states = [[id(container) for container in _state_of_perform(one, user_ops)] for one in (op, other)]
    if states[0] != states[1]:
        _refuse(op, "another of the graph differs from it only in the containers that its perform fills")


def _other_attributes(op: Op) -> dict[str, object]:
    """Return the attributes of `op` that are not properties."""
    return {name: value for name, value in attributes(op).items() if name not in (op.__props__ or ())}


def _alike(one: object, other: object) -> bool:
    """Return True if two private attributes are equal, such as two empty memo tables."""
    try:
        return one is other or (type(one) is type(other) and bool(one == other))
    except Exception:  # the == of user classes and of arrays may raise
        return False


def _write_op(encoder: Encoder, op: Op) -> None:
    held = op.key_props() if op.__props__ is not None else _refuse(op, "declare __props__ for it")
    named = op.__props__ or ()
    others = {name: value for name, value in _other_attributes(op).items() if not _is_private_state(op, name)}
    held = {**held, **{name: others[name] for name in sorted(others)}}
    encoder.tag(b"O")
    encoder.value(type(op))
    # Code whose results are stored may look at `__dict__`, which has an order.
    encoder.value(() if _is_only_run(op) else tuple(name for name in vars(op) if name in held))
    encoder.uint(len(held))
    for name, value in held.items():
        encoder.text(name)
        try:
            encoder.value(value)
        except Unfingerprintable as error:
            error.inside(f"props[{name!r}]" if name in named else f"attribute {name!r}")
            raise


def _refuse(item: object, advice: str) -> Any:
    raise Unfingerprintable(f"{type(item).__module__}.{type(item).__qualname__}", advice)
