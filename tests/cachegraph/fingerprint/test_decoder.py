"""Encodings are read back as text, and the first place where two differ is found."""

from __future__ import annotations

import functools
import re
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.decoder import decode
from cachegraph.fingerprint.encoding import encode, encode_call
from cachegraph.fingerprint.value_difference import describe_difference


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


FACTOR = 2


class Scaled:
    by = 3

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def of(self, x: float) -> float:
        return self.by * x


def scaled(x: float, offset: int = 0) -> float:
    import math

    return math.floor(Scaled(offset).of(x)) * FACTOR


def closing(bound: int) -> Any:
    return lambda x, *more, flag=bound: (x, more, flag, bound)


def encoded(function: Any, *args: Any) -> tuple[bytes, bytes]:
    return encode_call(function, dict(enumerate(args)))[:2]


def test_a_function_differs_by_the_name_of_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = encoded(scaled)
    monkeypatch.setitem(globals(), "FACTOR", 5)
    assert describe_difference(encoded(scaled)[0], before) == "scaled global FACTOR: 5, stored 2"
    monkeypatch.undo()
    monkeypatch.setattr(Scaled, "by", 4)
    assert describe_difference(encoded(scaled)[0], before) == "Scaled.by: 4, stored 3"
    monkeypatch.undo()
    monkeypatch.setattr(scaled, "__defaults__", (7,))
    assert describe_difference(encoded(scaled)[0], before) == "scaled defaults[0]: 7, stored 0"


def test_a_closure_differs_by_its_variables_and_code_by_its_instructions() -> None:
    one, other = closing(1), closing(2)
    other.__kwdefaults__ = one.__kwdefaults__
    assert (
        describe_difference(encoded(other)[0], encoded(one)[0])
        == "closing.<locals>.<lambda> variable bound: 2, stored 1"
    )
    codes = []
    for text in ("x + 1000", "x + 2000", "x + x + 1000"):
        exec(f"def f(x): return {text}", namespace := {"__name__": __name__})
        codes.append(encoded(namespace["f"])[0])
    assert re.fullmatch(
        r"f instruction \d+: LOAD_CONST 2000, stored LOAD_CONST 1000", describe_difference(codes[1], codes[0])
    )
    assert re.fullmatch(
        r"f: code of \d+ instructions, stored code of \d+ instructions",
        describe_difference(codes[2], codes[0]),
    )


def test_arguments_differ_by_their_names_and_attributes() -> None:
    differences = [
        ((1, {"a": 1, "b": 2}), (1, {"a": 1, "b": 3}), "[1]['b']: 2, stored 3"),
        ((Scaled(1),), (Scaled(2),), "['attributes']['offset']: 1, stored 2"),
        (([int, np.zeros(2)[::2]],), ([str, np.zeros(2)[::2]],), "[0][0]: builtins.int of Python "),
        ((np.zeros((2, 3)).T,), (np.zeros((3, 2)),), "with the strides [8, 24], stored"),
    ]
    for wanted, stored, said in differences:
        assert said in describe_difference(encoded(len, *wanted)[1], encoded(len, *stored)[1])


def test_of_definitions_that_reach_other_things_the_names_are_told() -> None:
    def one() -> Any:
        return scaled

    def other() -> Any:
        return closing

    other.__code__ = other.__code__.replace(co_name="one", co_qualname=one.__qualname__)
    other.__name__, other.__qualname__ = one.__name__, one.__qualname__
    assert "LOAD_GLOBAL closing, stored LOAD_GLOBAL scaled" in describe_difference(
        encoded(other)[0], encoded(one)[0]
    )


@pytest.mark.parametrize("value", [scaled, Scaled, closing(1), len, functools.partial(scaled, 1)])
def test_a_damaged_definition_is_refused_or_read_and_nothing_else(value: Any) -> None:
    whole = encode_call(value, {})[0]
    decode(whole)
    for place in range(1, len(whole), 1 + len(whole) // 200):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        with suppress(InvalidEncoding):
            decode(bytes(damaged))
        with suppress(InvalidEncoding):
            decode(whole[:place])
