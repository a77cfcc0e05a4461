from __future__ import annotations

import pickle
import subprocess
import sys
import typing
from copy import copy, deepcopy
from typing import Any, Generic, TypeVar

import pytest

from cachegraph.named_tuples import NamedTuple

T = TypeVar("T")


class Ours(NamedTuple, Generic[T]):
    """A named tuple."""

    first: int
    second: T
    third: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of values."""
        return len(self)


class Theirs(typing.NamedTuple):
    first: int
    second: Any
    third: tuple[str, ...] = ()


CALLS = [
    ((1, 2), {}),
    ((1, 2, ("a",)), {}),
    ((1,), {"second": 2}),
    ((), {"third": (), "second": 2, "first": 1}),
]


@pytest.mark.parametrize(("values", "named"), CALLS)
def test_values_are_given_by_position_by_name_and_by_default(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    ours, theirs = Ours(*values, **named), Theirs(*values, **named)
    assert tuple(ours) == tuple(theirs)
    assert (ours.first, ours.second, ours.third) == (theirs.first, theirs.second, theirs.third)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()


WRONG = [
    ((1,), {}),
    ((1, 2, (), 4), {}),
    ((1, 2), {"first": 3}),
    ((1, 2), {"fourth": 4}),
    ((), {"second": 2}),
]


@pytest.mark.parametrize(("values", "named"), WRONG)
def test_values_that_do_not_fit_the_fields_are_refused(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    for cls in (Ours, Theirs):
        with pytest.raises(TypeError):
            cls(*values, **named)
    with pytest.raises(TypeError, match="its fields are first, second, third"):
        Ours(*values, **named)


def test_a_class_is_what_typing_makes_of_it() -> None:
    assert Ours.__bases__ == (tuple, Generic)
    assert Theirs.__bases__ == (tuple,)
    for attribute in ("_fields", "_field_defaults", "__match_args__", "__slots__"):
        assert getattr(Ours, attribute) == getattr(Theirs, attribute)
    assert Ours.__doc__ == "A named tuple."
    assert Ours(1, 2).total == 3
    assert not hasattr(Ours(1, 2), "__dict__")


def test_copies_have_other_values_in_the_named_fields() -> None:
    assert Ours(1, 2)._replace(second=5) == (1, 5, ())
    assert Ours._make([1, 2, ()]) == (1, 2, ())
    with pytest.raises(TypeError):
        Ours(1, 2)._replace(fourth=4)


def test_a_value_survives_copies_and_another_process() -> None:
    value = Ours(1, "b", ("c",))
    assert copy(value) == deepcopy(value) == value
    assert type(copy(value)) is Ours
    program = "import pickle, sys; print(repr(pickle.loads(sys.stdin.buffer.read())))"
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(value), stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.decode().strip() == repr(value)
