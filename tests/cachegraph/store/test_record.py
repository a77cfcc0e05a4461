"""The record: it is read back exactly, and anything else is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegraph.key import CacheKey
from cachegraph.store.entry import Miss
from cachegraph.store.record import Record, decode, decode_by_digest, encode
from tests.cachegraph.store.older_release import first_format

Key = Callable[..., CacheKey]

RECORD = Record(b"payload" * 5, None, {"graph": "ab" * 40}, {"rewrite": 0.25, "compile": 1.5})

digests = st.binary(min_size=40, max_size=40).map(bytes.hex)
costs = st.floats(allow_nan=False, allow_infinity=False)
records = st.builds(
    Record,
    st.binary(max_size=300),
    st.none() | digests,
    st.dictionaries(st.text(), digests, max_size=4),
    st.dictionaries(st.text(), costs, max_size=4),
)


def key_of(text: str) -> CacheKey:
    return CacheKey.build("kernel", {"graph": text.encode()})


@given(records)
def test_what_is_encoded_is_decoded(record: Record) -> None:
    try:
        content = encode(key_of("a"), record)
    except UnicodeEncodeError:
        return  # a lone surrogate in a name: refused
    assert decode(content, key_of("a")) == record


def test_every_flipped_bit_is_a_miss(key: Key) -> None:
    content = encode(key("a"), RECORD)
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        found = decode(bytes(flipped), key("a"))
        assert isinstance(found, Miss)
        assert found.reason in ("damaged", "foreign-format")


def test_every_truncation_is_a_miss(key: Key) -> None:
    content = encode(key("a"), RECORD)
    for length in range(len(content)):
        found = decode(content[:length], key("a"))
        assert isinstance(found, Miss)
        assert found.reason == "damaged"


@pytest.mark.parametrize("content", [None, 7, 1.5, "text", b""])
def test_a_column_of_another_type_is_damage(content: object, key: Key) -> None:
    found = decode(content, key("a"))
    assert isinstance(found, Miss)
    assert found.reason == "damaged"


def test_the_record_of_another_release_is_foreign(key: Key) -> None:
    content = encode(key("a"), RECORD)
    found = decode(b"CGR\x01" + content[4:], key("a"))
    assert isinstance(found, Miss)
    assert found.reason == "foreign-format"


def test_the_record_of_another_key_is_damage(key: Key) -> None:
    found = decode(encode(key("b"), RECORD), key("a"))
    assert isinstance(found, Miss)
    assert found.reason == "damaged"
    assert key("b").hex in found.detail


def test_the_same_digest_with_another_confirmation_is_a_collision(key: Key) -> None:
    ours, theirs = key("a"), key("b")
    twin = CacheKey(theirs.level, theirs.parts, ours.digest, theirs.confirmation)
    found = decode(encode(twin, RECORD), ours)
    assert isinstance(found, Miss)
    assert found.reason == "collision"


def test_the_layout_of_a_record_is_the_documented_one() -> None:
    key = CacheKey("kernel", (), b"D" * 16, b"C" * 32)
    content = encode(key, Record(b"PAYLOAD", None, {"g": "11" * 40}, {"s": 1.0}))
    checked = (
        b"D" * 16 + b"C" * 32 + b"\0" + bytes(40) + b"\0\1\0\1"
        b"\0\1g" + b"\x11" * 40 + b"\0\1s" + bytes.fromhex("3ff0000000000000") + b"PAYLOAD"
    )  # fmt: skip
    assert content == b"CGR\x02" + bytes.fromhex("88377d21a366bc48ed1e411c8842c672") + checked


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_a_cost_that_is_not_finite_is_refused(seconds: float, key: Key) -> None:
    with pytest.raises(ValueError, match="'compile' took"):
        encode(key("a"), Record(b"", None, {}, {"compile": seconds}))


def test_a_name_that_is_too_long_is_refused(key: Key) -> None:
    with pytest.raises(ValueError, match="65536 bytes"):
        encode(key("a"), Record(b"", None, {"n" * 65536: "11" * 40}, {}))


def test_a_record_of_format_1_is_no_hit_and_still_says_which_blobs_it_needs(key: Key) -> None:
    older = first_format(key("a"), b"PAYLOAD", {"g": "11" * 16})
    found = decode(older, key("a"))
    assert isinstance(found, Miss)
    assert found.reason == "foreign-format"
    assert decode_by_digest(older, key("a").digest) == Record(b"PAYLOAD", None, {"g": "11" * 16}, {})
    assert isinstance(decode_by_digest(older[:-1], key("a").digest), Miss)
