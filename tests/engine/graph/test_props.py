"""Properties are equal if their canonical encodings are, while `==` equates different values."""

from __future__ import annotations

import dataclasses
import enum
import math
import struct
from collections import namedtuple
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.fingerprint.encoding import encode
from engine.graph import Apply, Op
from engine.graph.props import exact

Pair = namedtuple("Pair", ["a", "b"])
Other = namedtuple("Other", ["a", "b"])


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any = dataclasses.field(default=0, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    x: Any


class Text(str):
    pass


class Level(enum.IntEnum):
    ONE = 1


NAN, OTHER_NAN = (struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 + k))[0] for k in (0, 1))
GROUPS: list[list[Any]] = [
    [1, True, 1.0, 1 + 0j, np.int64(1), np.int32(1), np.bool_(True), np.float64(1), np.float32(1), Level.ONE, Fraction(1)],
    [0.0, -0.0, np.float64(0.0), np.float64(-0.0), 0, False],
    [complex(-1, 0.0), complex(-1, -0.0), np.complex128(complex(-1, 0.0)), np.complex128(complex(-1, -0.0)), -1],
    [NAN, OTHER_NAN, math.inf, -math.inf],
    ["a", Text("a"), b"a", np.str_("a")],
    [frozenset({1}), frozenset({True}), frozenset({1.0}), frozenset({np.int64(1)})],
    [(1, 2), Pair(1, 2), Other(1, 2), (True, 2), Pair(True, 2), ((1, 2),), (Pair(1, 2),)],
    [(float, struct.pack("<d", 0.0)), 0.0, (tuple,), ()],
    [Point(1), Point(True), Point(1.0), Point(1, 1), Point((1,)), Point(Pair(1, 2)), Slotted(1), Slotted(True)],
    [slice(1, 2), slice(True, 2), slice(1, 2.0), slice(1, 2, None), slice(None, 2)],
    [np.dtype("f8"), np.dtype(">f8"), "f8", float, np.float64],
    [range(0), range(5, 5), ()],
    [None, Ellipsis, "None"],
]  # fmt: skip
ALL = [value for group in GROUPS for value in group]


def test_values_have_equal_keys_if_their_encodings_and_types_are_equal() -> None:
    for first in ALL:
        assert exact(first) == exact(first)
        hash(exact(first))
        for second in ALL:
            is_same = type(first) is type(second) and encoded(first) == encoded(second)
            assert (exact(first) == exact(second)) == is_same, (first, second)


def encoded(value: Any) -> Any:
    return encode(value, ()) if type(value) not in (Text, Fraction) else repr(value)


class Scaling(Op):
    __props__ = ("factor",)

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [pt.dvector()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = np.array(
            [np.sqrt(complex(self.factor)).imag, np.dtype(type(self.factor)).itemsize]
        )


@pytest.mark.parametrize(
    ("first", "second"),
    [(complex(-1, 0.0), complex(-1, -0.0)), (np.float32(2), np.int64(2)), (np.int64(1), np.bool_(True))],
)
def test_ops_whose_properties_are_equal_but_not_alike_are_two(first: Any, second: Any) -> None:
    x = pt.vector("x")
    f = engine.function([x], [Scaling(first)(x), Scaling(second)(x)])
    apart = [engine.function([x], Scaling(value)(x))(np.ones(1)) for value in (first, second)]
    assert not np.array_equal(*apart)
    for found, due in zip(f(np.ones(1)), apart, strict=True):
        np.testing.assert_array_equal(found, due)


def test_what_cannot_be_hashed_is_refused_as_a_property() -> None:
    for value in ([1], {}, np.zeros(1), (1, [2]), Point([1])):
        with pytest.raises(TypeError):
            exact(value)
