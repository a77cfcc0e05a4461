"""Equal values have one encoding, different values different ones, and what has none is refused with the way to it."""

import collections
import enum
import functools
import math
import pickle
import struct
import sys
import types
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import Encoder, digest, encode, fingerprint, register_encoder, strong_digest
from cachegraph.fingerprint.encoding import ValueEncoder
from cachegraph.fingerprint.primitives import HASH_VERSION, MAX_DEPTH, Reader, pack_uint, running_digest


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"


class OtherColor(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Point:
    x: object
    y: object = 0


@dataclass(frozen=True, slots=True)
class SlottedPoint:
    x: object
    y: object = 0


@dataclass
class PointOnce:
    x: Any
    y: Any

    @functools.cached_property
    def norm(self) -> float:
        return math.hypot(self.x, self.y)


class PlainSubclassOfPoint(Point):
    pass


@dataclass
class Listing(list):  # type: ignore[type-arg]
    title: str = ""


class Hidden:
    __slots__ = ("secret",)


@dataclass
class OnHidden(Hidden):
    x: int = 0


@dataclass
class Unset:
    x: int = field(init=False)


class Pair(NamedTuple):
    first: object
    second: object


class SubclassOfPair(Pair):
    pass


class Outer:
    class Inner:
        pass


class Loose:
    """Registered with an encoder that writes its text raw, with nothing to show where it ends."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


class OtherLoose(Loose):
    pass


class Holder:
    def __init__(self, held: object) -> None:
        self.held = held


def _encode_raw(encoder: Encoder, value: Loose) -> None:
    encoder.tag(value.raw)


def _encode_holder(encoder: Encoder, value: Holder) -> None:
    encoder.value(value.held)


register_encoder(Loose, _encode_raw)
register_encoder(OtherLoose, _encode_raw)
register_encoder(Holder, _encode_holder)


# Reading back ---------------------------------------------------------------------------------------------------------

numbers = st.integers() | st.floats() | st.complex_numbers() | st.booleans()
any_float = st.binary(min_size=8, max_size=8).map(lambda bits: struct.unpack("<d", bits)[0])
text = st.text(st.characters(codec=None, categories=None)) | st.text(
    st.characters(categories=["Cs"]), max_size=3
)
atoms = (
    st.none() | st.just(...) | numbers | any_float | text | st.binary() | st.builds(range, st.integers(-9, 9))
)
hashable = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
values = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.sets(hashable, max_size=4)
        | st.builds(slice, inner, inner, inner)
    ),
    max_leaves=15,
)


def decode(reader: Reader) -> Any:
    """Read one plain value back: what can be read back was encoded without loss."""
    tag = chr(reader.byte())
    if tag in "NTF.":
        return {"N": None, "T": True, "F": False, ".": ...}[tag]
    if tag == "i":
        return int.from_bytes(reader.bytes(), "little", signed=True)
    if tag in "fc":
        parts = [
            struct.unpack("<d", bytes(reader.byte() for _ in range(8)))[0] for _ in range(1 + (tag == "c"))
        ]
        return parts[0] if tag == "f" else complex(*parts)
    if tag in "sb":
        return reader.text() if tag == "s" else reader.bytes()
    if tag in ":r":
        return (slice if tag == ":" else range)(decode(reader), decode(reader), decode(reader))
    if tag == "{":
        return {decode(reader): decode(reader) for _ in range(reader.uint())}
    make = {"(": tuple, "[": list, "<": set, "=": frozenset}[tag]
    return make([decode(reader) for _ in range(reader.uint())])


def identity(value: Any) -> object:
    """Return what two values share exactly if they are the same one: types all the way down, floats by their bits."""
    cls = type(value)
    if cls is float:
        return (float, struct.pack("<d", value))
    if cls is complex:
        return (complex, struct.pack("<dd", value.real, value.imag))
    if cls in (tuple, list):
        return (cls, tuple(map(identity, value)))
    if cls in (set, frozenset):
        return (cls, frozenset(collections.Counter(map(identity, value)).items()))
    if cls is dict:
        return (
            cls,
            frozenset(collections.Counter((identity(k), identity(v)) for k, v in value.items()).items()),
        )
    if cls in (slice, range):
        return (cls, identity((value.start, value.stop, value.step)))
    return (cls, value)


@given(values)
def test_a_value_can_be_read_back_from_its_encoding(value: object) -> None:
    reader = Reader(encode(value), "reading back")
    assert reader.byte() == HASH_VERSION
    assert identity(decode(reader)) == identity(value)
    reader.end()


@given(st.lists(values, min_size=2, max_size=6))
def test_encodings_are_equal_exactly_if_the_values_are(several: list[object]) -> None:
    for a in several:
        for b in several:
            assert (encode(a) == encode(b)) == (identity(a) == identity(b))


@given(st.dictionaries(hashable, values), st.randoms(use_true_random=False))
def test_the_order_in_which_a_dict_was_filled_is_not_identity(mapping: dict[Any, Any], random: Any) -> None:
    items = list(mapping.items())
    random.shuffle(items)
    assert encode(dict(items)) == encode(mapping)


@given(st.lists(hashable), st.randoms(use_true_random=False))
def test_the_order_in_which_a_set_was_filled_is_not_identity(elements: list[Any], random: Any) -> None:
    one = set(elements)
    ordered = list(one)
    random.shuffle(ordered)
    assert encode(set(ordered)) == encode(one)
    assert encode(frozenset(ordered)) == encode(frozenset(one))


def test_values_that_look_alike_have_different_encodings() -> None:
    alike: list[object] = [
        *(None, False, 0, 0.0, -0.0, 0j, complex(-0.0, 0.0), "", b"", (), [], {}, set(), frozenset(), "None"),
        *(True, 1, 1.0, 1 + 0j, "1", b"1", (1,), [1], {1}, frozenset({1}), {1: None}, {None: 1}, ((1,),)),
        *(("ab", "c"), ("a", "bc"), ("abc",), "abc", b"abc", ["ab", "c"], (("ab",), "c"), ("ab", ("c",))),
        *(math.nan, -math.nan, math.inf, "nan", slice(1), slice(0, 1), range(1), range(0, 1, 2), ..., "..."),
        *(Color.RED, OtherColor.RED, Number.ONE, Access.READ, Access.READ | Access.WRITE, Color, Color.BLUE),
        *(Point(1, 2), Point(2, 1), SlottedPoint(1, 2), Pair(1, 2), (1, 2), {"x": 1, "y": 2}, Point, Pair),
        *(
            Loose(b"x"),
            OtherLoose(b"x"),
            int,
            bool,
            type,
            object,
            Outer,
            Outer.Inner,
            {1: 2, 3: 4},
            {1: 4, 3: 2},
        ),
        *(
            ({1}, {2}),
            ({1, 2}, set()),
            ({1: 2}, {}),
            ({}, {1: 2}),
            ({"a": "b"},),
            (["a", "b"],),
            2**64,
            -(2**64),
        ),
    ]
    assert len({encode(value) for value in alike}) == len(alike)
    assert len({fingerprint(value) for value in alike}) == len(alike)


def test_equal_values_built_apart_have_one_encoding() -> None:
    shared = ["a"]
    assert encode((shared, shared)) == encode((["a"], ["a"]))
    assert encode(Point([1], {"a": 2})) == encode(Point([1], {"a": 2}))
    assert encode(Pair(1, "".join(["a", "b"]))) == encode(Pair(1, "ab"))
    assert encode(Access.READ | Access.WRITE) == encode(Access.WRITE | Access.READ)
    assert encode(Holder({"a": 1, "b": 2})) == encode(Holder({"b": 2, "a": 1}))


def test_two_nans_in_one_set_are_both_in_the_encoding() -> None:
    assert encode({float("nan"), float("nan")}) != encode({float("nan")})


def test_a_digest_is_16_bytes_and_a_strong_digest_32() -> None:
    assert digest(encode("a")) == fingerprint("a")
    assert (len(fingerprint("a")), len(strong_digest(b"a"))) == (16, 32)


def test_a_running_digest_is_that_of_all_contents_in_a_row() -> None:
    running = running_digest()
    for content in (b"a", b"", b"bc" * 1000):
        running.update(content)
    assert running.digest() == digest(b"a" + b"bc" * 1000)


# Numbers in the stream ------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1))
def test_a_uint_can_be_read_back_and_is_written_in_one_way(n: int) -> None:
    packed = pack_uint(n)
    reader = Reader(packed, "reading back")
    assert reader.uint() == n
    reader.end()
    encoder = ValueEncoder()
    encoder.uint(n)
    assert encoder.encoding[1:] == packed


@pytest.mark.parametrize("n", [-1, 2**64])
def test_a_number_that_is_no_uint_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="at least 0 and less than"):
        pack_uint(n)
    with pytest.raises(ValueError, match="at least 0 and less than"):
        ValueEncoder().uint(n)


# What a registered encoder writes is framed ---------------------------------------------------------------------------


def test_a_registered_encoder_cannot_reach_into_its_neighbour() -> None:
    assert encode((Loose(b"a"), Loose(b"bc"))) != encode((Loose(b"ab"), Loose(b"c")))
    assert encode((Loose(b"a(\1"), None)) != encode((Loose(b"a"), (None,)))


def test_a_second_encoder_for_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match="has one already"):
        register_encoder(Loose, _encode_raw)
    with pytest.raises(ValueError, match="has one already"):
        register_encoder(int, _encode_raw)


def test_what_is_no_class_or_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="3: it is no class"):
        register_encoder(3, _encode_raw)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="found 'encode'; give a function"):
        register_encoder(LookupError, "encode")  # type: ignore[arg-type]


def test_a_subclass_does_not_inherit_a_registered_encoder() -> None:
    class Looser(Loose):
        pass

    with pytest.raises(Unfingerprintable):
        encode(Looser(b"x"))


# What has no encoding -------------------------------------------------------------------------------------------------


def _local_class() -> type:
    class Local:
        pass

    return Local


def _with_extra_attribute() -> object:
    point = PointOnce(1, 2)
    point.note = "hidden"  # type: ignore[attr-defined]
    return point


REFUSED = {
    "an object": object(),
    "an int subclass": type("MyInt", (int,), {})(1),
    "a dict subclass": collections.OrderedDict(a=1),
    "a defaultdict": collections.defaultdict(list),
    "a mapping proxy": types.MappingProxyType({}),
    "an object of a class in a function": _local_class()(),
    "a generic alias": list[int],
    "a plain subclass of a dataclass": PlainSubclassOfPoint(1),
    "a dataclass that is a list": Listing("title"),
    "a dataclass on a base with slots": OnHidden(1),
    "a dataclass with an attribute that is no field": _with_extra_attribute(),
    "a subclass of a named tuple": SubclassOfPair(1, 2),
    "a struct sequence": sys.flags,
    "an iterator": iter(()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(Unfingerprintable) as caught:
        encode(REFUSED[name])
    assert caught.value.path == ()
    assert caught.value.found.split()[-1] in str(caught.value)
    assert caught.value.advice in str(caught.value)


def test_a_local_dataclass_is_refused_each_time_it_is_met() -> None:
    @dataclass
    class Local:
        x: int

    for _ in range(2):
        with pytest.raises(Unfingerprintable, match="Local"):
            encode(Local(1))


def test_a_field_that_was_never_set_is_refused() -> None:
    with pytest.raises(Unfingerprintable, match=r"\.x: found .*NeverSet"):
        encode(Unset())


def test_what_a_dataclass_has_computed_and_kept_is_not_identity() -> None:
    fresh, used = PointOnce(3, 4), PointOnce(3, 4)
    assert used.norm == 5.0
    assert encode(used) == encode(fresh)


_THING = object()


def test_the_message_leads_to_the_offending_object() -> None:
    with pytest.raises(Unfingerprintable) as caught:
        encode((0, {"fn": Point([0, slice(None, Pair(1, {_THING}))])}))
    error = caught.value
    assert error.path == ("[1]", "['fn']", ".x", "[1]", ".stop", "[1]", "an element of the set")
    assert error.found == "builtins.object"
    error.inside("op Elemwise")
    error.inside("function")
    assert str(error).startswith(
        "cannot fingerprint function -> op Elemwise -> [1] -> ['fn'] -> .x -> [1] -> .stop -> [1] -> an element of the "
        "set: found builtins.object; "
    )


def test_the_path_leads_through_keys_of_dicts_registered_types_and_enums() -> None:
    with pytest.raises(Unfingerprintable) as caught:
        encode([Holder({(1, _THING): 0})])
    assert caught.value.path == ("[0]", "a key of the dict", "[1]")
    with pytest.raises(Unfingerprintable) as caught:
        encode([Holder({5: object()})])
    assert caught.value.path == ("[0]", "a value of the dict")


def test_the_error_survives_pickling_with_its_path() -> None:
    with pytest.raises(Unfingerprintable) as caught:
        encode([_THING])
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.path == ("[0]",)


def _cycles() -> list[object]:
    in_list: list[object] = []
    in_list.append(in_list)
    in_dict: dict[str, object] = {}
    in_dict["self"] = [in_dict]
    in_point = PointOnce([], 0)
    in_point.x.append(in_point)
    in_holder = Holder(None)
    in_holder.held = (in_holder,)
    return [in_list, in_dict, in_point, in_holder]


@pytest.mark.parametrize("index", range(4))
def test_a_value_that_contains_itself_is_refused(index: int) -> None:
    with pytest.raises(Unfingerprintable, match="contains itself") as caught:
        encode(_cycles()[index])
    assert "more ..." in str(caught.value)


def _nested(depth: int) -> object:
    value: object = ()
    for _ in range(depth - 1):
        value = (value,)
    return value


def test_a_value_may_nest_to_the_limit_and_no_deeper() -> None:
    assert len(encode(_nested(MAX_DEPTH))) == 1 + 2 * MAX_DEPTH
    with pytest.raises(Unfingerprintable, match="at most"):
        encode(_nested(MAX_DEPTH + 1))
    with pytest.raises(Unfingerprintable, match="at most"):
        encode(_nested(100_000))


def test_a_stack_that_is_nearly_full_refuses_and_does_not_overflow() -> None:
    def at_the_bottom(frames_left: int) -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_depth() + frames_left)
        try:
            encode(_nested(MAX_DEPTH))
        finally:
            sys.setrecursionlimit(limit)

    with pytest.raises(Unfingerprintable, match="nest the value less deeply"):
        at_the_bottom(100)


def _depth() -> int:
    frame: types.FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    return depth
