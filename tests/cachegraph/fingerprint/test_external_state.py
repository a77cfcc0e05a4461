"""Code whose results are stored reads nothing that no key describes: the environment, files, clocks."""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.external_state import refuse_external_state
from tests.cachegraph.fingerprint.external_state_cases import COMPUTING, READING, TELLING


def from_environment() -> Any:
    return os.getenv("NUMBER")


def from_import() -> Any:
    import os

    return os.getenv("NUMBER")


def from_name() -> Any:
    from time import time

    return time()


def from_builtin() -> Any:
    with open("number") as file:
        return file.read()


def from_path() -> Any:
    return Path("number").read_text()


def from_numpy() -> Any:
    return np.loadtxt("number")


def from_another() -> Any:
    return from_numpy()


def from_closure(function: Any = None) -> Any:
    return lambda: reader()


reader = functools.partial(from_numpy)
compiled = numba.njit(from_environment)
TABLE = {"number": from_numpy}


def from_dispatcher() -> Any:
    return compiled()


def from_table() -> Any:
    return TABLE["number"]()


class Made:
    def __init__(self) -> None:
        self.number = np.load("number")


def from_class() -> Any:
    return Made().number


class Reader:
    scale = 2.0

    def read(self) -> Any:
        return time.time()

    def of_method(self) -> Any:
        return self.read()

    def of_attribute(self) -> Any:
        return self.function()  # type: ignore[attr-defined]

    def of_nothing(self, node: Any, shapes: Any) -> Any:
        sizes = [os.path.join("a", "b"), np.zeros(3), shapes[0]]
        return lambda x: x * self.scale + len(sizes)


@pytest.mark.parametrize(
    "function",
    [
        *(from_environment, from_import, from_name, from_builtin, from_path, from_numpy, from_another, from_closure()),
        *(from_dispatcher, from_table, from_class, reader, Reader().of_method),
    ],
)  # fmt: skip
def test_what_reads_what_lies_outside_is_refused(function: Any) -> None:
    with pytest.raises(Unfingerprintable, match="may read external state"):
        refuse_external_state([function], {})


def test_what_an_instance_holds_is_looked_at_where_code_takes_it() -> None:
    refuse_external_state([Reader().of_attribute], {"other": from_numpy})
    with pytest.raises(Unfingerprintable, match=r"numpy\.loadtxt"):
        refuse_external_state([Reader().of_attribute], {"function": from_numpy})


def test_methods_that_are_not_called_and_constructors_may_read_anything() -> None:
    class Loaded(Reader):
        def __init__(self) -> None:
            self.table = np.load("number")

        def perform(self) -> Any:
            return self.read() + self.table

    refuse_external_state(
        [Reader().of_nothing, Loaded.__new__(Loaded).of_nothing, None], {"table": np.zeros(3)}
    )


@pytest.mark.parametrize("name", READING)
def test_what_is_not_known_to_compute_only_is_refused(name: str) -> None:
    with pytest.raises(Unfingerprintable, match="may read external state"):
        refuse_external_state([READING[name]], {})


@pytest.mark.parametrize("name", COMPUTING)
def test_what_ops_are_usually_made_of_is_not_refused(name: str) -> None:
    refuse_external_state([COMPUTING[name]], {}, ("engine",))


@pytest.mark.parametrize("name", TELLING)
def test_what_can_tell_the_order_of_sets_or_which_objects_are_one_is_refused(name: str) -> None:
    with pytest.raises(
        Unfingerprintable, match=r"a set of which code may tell the order|which objects values are"
    ):
        refuse_external_state([TELLING[name]], {})


def test_what_was_remembered_of_before_is_forgotten() -> None:
    numbers = [1.0]
    remembered = functools.lru_cache(lambda: numbers[0])
    assert remembered() == 1.0
    numbers[0] = 2.0
    refuse_external_state([lambda: remembered()], {})
    assert remembered() == 2.0
