"""A small type and small Ops, to test graphs without tensors."""

import struct

import pytest

from engine.graph import Apply, Constant, Op, Type


class Floats(Type):
    """Python floats of one `kind`; kind "any" holds all kinds."""

    __props__ = ("kind",)

    def __init__(self, kind="plain"):
        self.kind = kind

    def filter(self, value, strict=False, allow_downcast=None):
        if not isinstance(value, float):
            raise TypeError(f"{value!r} is no float")
        return value

    def data_key(self, value):
        return (struct.pack("<d", value),)

    def same_data(self, first, second):
        return self.data_key(first) == self.data_key(second)

    def is_super(self, other):
        return self == other or (isinstance(other, Floats) and self.kind == "any")


class Combine(Op):
    """Combines any number of floats to one."""

    __props__ = ("label", "weight")

    def __init__(self, label="combine", weight=1.0):
        self.label = label
        self.weight = weight

    def make_node(self, *inputs):
        return Apply(self, inputs, [PLAIN()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = self.weight * sum(inputs)


class Split(Op):
    """Splits one float into two."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [PLAIN(), PLAIN()])


class Follow(Op):
    """Maps a float to one of the same kind."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])


PLAIN = Floats()
DEPTHS = [5_000, pytest.param(40_000, marks=pytest.mark.slow)]
combine = Combine()
split = Split()
follow = Follow()


def constant(value):
    return Constant(PLAIN, value)


def chain(start, length):
    """Return the result of `length` nodes in sequence on `start`."""
    for _ in range(length):
        start = follow(start)
    return start
