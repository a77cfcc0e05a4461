"""Encodings are read back as text, and the first place where two differ is found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.decoder import decode, describe_difference
from cachegraph.fingerprint.encoding import encode


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 2**80, 1.5, -0.0, "text", b"bytes", (), (1,), (1, "a"), [], [1, [2]], ...],
)
def test_a_plain_value_reads_as_python_writes_it(value: Any) -> None:
    assert decode(encode(value)).text == ("..." if value is ... else repr(value))


class Colour(Enum):
    RED = 1


class Point(NamedTuple):
    x: int


@dataclass
class Options:
    level: int
    names: tuple[str, ...]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 2}, "{'a': 2, 'b': 1}"),
        (frozenset({1}), "frozenset({1})"),
        (slice(1, None), "slice(1, None, None)"),
        (range(3), "range(0, 3, 1)"),
        (1 + 2j, "complex(1.0, 2.0)"),
        (int, "builtins.int"),
        (Colour.RED, f"{__name__}.Colour.'RED'=1"),
        (Point(1), f"{__name__}.Point(1,)"),
        (Options(1, ("a",)), f"{__name__}.Options(level=1, names=('a',))"),
        (np.dtype("float32"), "dtype <f4"),
    ],
)
def test_other_values_read_as_what_they_are(value: Any, text: str) -> None:
    assert decode(encode(value)).text == text


def test_arrays_and_scalars_are_told_by_dtype_shape_and_bytes() -> None:
    assert decode(encode(np.zeros((2, 3)))).text.startswith("<f8 array of shape (2, 3) 48 bytes ")
    assert decode(encode(np.float32(1))).text == "<f4 scalar b'\\x00\\x00\\x80?'"


@pytest.mark.parametrize(
    ("wanted", "stored", "line"),
    [
        (
            {"numba": "0.68", "numpy": "2"},
            {"numba": "0.67", "numpy": "2"},
            "['numba']: '0.68', stored '0.67'",
        ),
        ((1, (2, 3)), (1, (2, 4)), "[1][1]: 3, stored 4"),
        (Options(1, ()), Options(1, ("a",)), ".names: (), stored ('a',)"),
        ({"a": 1}, {"b": 1}, "{'a': 1}, stored {'b': 1}"),
        (1, 1.0, "1, stored 1.0"),
        (0.0, -0.0, "0.0, stored -0.0"),
    ],
)
def test_the_first_place_that_differs_is_named(wanted: Any, stored: Any, line: str) -> None:
    assert describe_difference(encode(wanted), encode(stored)) == line


def test_what_cannot_be_read_is_told_by_its_digest() -> None:
    assert describe_difference(b"sixteen bytes...", encode(1)).startswith("digest ")


def test_no_part_of_an_encoding_reads_as_one() -> None:
    whole = encode(({"a": [1, 2.0]}, Options(1, ("x",)), np.zeros(3), Colour.RED))
    for size in range(len(whole)):
        with pytest.raises(InvalidEncoding):
            decode(whole[:size])
    with pytest.raises(InvalidEncoding, match="the end"):
        decode(whole + b"N")
