"""A cache key is an ordered list of named parts; two keys are one only if level, names, order and bytes are."""

import hashlib
import json
import pickle
from pathlib import Path

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from cachegraph.errors import CachegraphError, InvalidEncoding
from cachegraph.fingerprint.primitives import HASH_VERSION
from cachegraph.key import LEVELS, CacheKey

GOLDEN = json.loads((Path(__file__).resolve().parents[1] / "golden" / "fingerprints.json").read_text())

parts = st.dictionaries(st.text(max_size=8) | st.just("\udc80"), st.binary(max_size=300), max_size=5)
levels = st.sampled_from(LEVELS)


@given(levels, parts)
def test_a_key_can_be_read_back_from_its_encoding(level: str, named: dict[str, bytes]) -> None:
    key = CacheKey.build(level, named)
    assert CacheKey.parse(key.encoding) == key
    assert key.level == level
    assert dict(key.parts) == named


@given(levels, parts, levels, parts)
def test_keys_are_equal_exactly_if_level_and_parts_are(
    level: str, named: dict[str, bytes], other_level: str, others: dict[str, bytes]
) -> None:
    one, other = CacheKey.build(level, named), CacheKey.build(other_level, others)
    same = (level, tuple(named.items())) == (other_level, tuple(others.items()))
    assert (one == other) == (one.digest == other.digest) == (one.confirmation == other.confirmation) == same


def test_bytes_cannot_move_from_one_part_to_another() -> None:
    alike = [
        *(
            {"a": b"xy", "b": b"z"},
            {"a": b"x", "b": b"yz"},
            {"a": b"xyz", "b": b""},
            {"a": b"xyz"},
            {"axyz": b""},
        ),
        *({"b": b"z", "a": b"xy"}, {"ab": b"xyz"}, {"a": b"xy\1b\1z"}, {}, {"": b""}),
    ]
    keys = {CacheKey.build(level, named).digest for named in alike for level in LEVELS}
    assert len(keys) == len(alike) * len(LEVELS)


def test_the_digests_are_those_of_the_encoding() -> None:
    key = CacheKey.build("function", {"graph": b"g" * 1000, "toolchain": b"t"})
    assert key.encoding[0] == HASH_VERSION
    assert key.digest == xxhash.xxh3_128(key.encoding).digest()
    assert key.confirmation == hashlib.blake2b(key.encoding, digest_size=32).digest()
    assert key.hex == key.digest.hex()
    assert key.part_digests == {
        "graph": xxhash.xxh3_128(b"g" * 1000).digest(),
        "toolchain": xxhash.xxh3_128(b"t").digest(),
    }


def test_a_key_is_what_it_was_when_the_format_was_fixed() -> None:
    encoding = bytes.fromhex(GOLDEN["a key"]["encoding"])
    key = CacheKey.parse(encoding)
    assert (key.level, [name for name, _ in key.parts]) == ("kernel", ["loops", "empty", "target"])
    assert key.hex == GOLDEN["a key"]["digest"]
    assert encoding.startswith(b"\2\x06kernel\3\5loops")


@given(parts)
@settings(deadline=None, max_examples=30)
def test_an_encoding_cut_short_is_refused(named: dict[str, bytes]) -> None:
    encoding = CacheKey.build("op", named).encoding
    for end in range(len(encoding)):
        with pytest.raises(InvalidEncoding):
            CacheKey.parse(encoding[:end])
    with pytest.raises(InvalidEncoding, match="1 more bytes"):
        CacheKey.parse(encoding + b"\0")


def test_a_flipped_bit_is_refused_or_gives_another_key() -> None:
    key = CacheKey.build("kernel", {"loops": b"abc" * 90, "target": b"\xed\xa0\x80"})
    for bit in range(8 * len(key.encoding)):
        damaged = bytearray(key.encoding)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            read = CacheKey.parse(bytes(damaged))
        except InvalidEncoding:
            continue
        assert read.encoding == damaged
        assert read.digest != key.digest
        assert read != key


@pytest.mark.parametrize(
    ("encoding", "says"),
    [
        (b"", "expected 1 more bytes at byte 0, found 0"),
        (b"\1\2op\0", "expected hash version 2 .* found version 1"),
        (b"\2\4loop\0", "expected a level .* found 'loop'"),
        (b"\2\2op\1\1\xff\0", "expected UTF-8 text"),
        (b"\2\2op\2\1a\0\1a\0", "one name twice"),
        (b"\2\xf8\2op\0", "the shortest form of a number"),
        (b"\2\2op\xff\xff\xff\xff\xff\xff\xff\xff\xff", "more bytes"),
    ],
)
def test_what_build_would_not_write_is_refused_with_what_was_found(encoding: bytes, says: str) -> None:
    with pytest.raises(CachegraphError, match=says):
        CacheKey.parse(encoding)


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="function, op, kernel, numba"):
        CacheKey.build("loop", {})


def test_a_key_is_hashable_picklable_and_short_to_print() -> None:
    key = CacheKey.build("function", {"graph": b"g" * 100_000})
    assert {key: 1}[CacheKey.build("function", {"graph": b"g" * 100_000})] == 1
    assert pickle.loads(pickle.dumps(key)) == key
    assert len(repr(key)) < 200
