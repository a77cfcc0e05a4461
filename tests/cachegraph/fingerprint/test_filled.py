"""Containers at the top of modules that functions change."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, UserDict
from collections.abc import Callable
from typing import Any

import pytest

from cachegraph.fingerprint.filled import containers_filled_by

TABLE: dict[float, float] = {1.0: 10.0}
CALLS: Counter[str] = Counter()
STATE: list[Any] = [TABLE]
OWN: UserDict[int, int] = UserDict()
COUNTED: list[int] = []


def by_item(key: int) -> None:
    TABLE[key] = 1.0


def by_sum(key: int) -> None:
    CALLS["a"] += key if key > 0 else -key


def by_deletion(key: int) -> None:
    del COUNTED[key]


def by_method(key: int) -> None:
    COUNTED.append(key)


def by_item_of_item(key: int) -> None:
    STATE[0][key] = key


def by_a_module(key: int) -> None:
    sys.argv.insert(key, "")


def by_a_type_of_users(key: int) -> None:
    OWN[key] = key


def within(key: int) -> Callable[[], None]:
    def inner() -> None:
        by_method(key)
        by_item(key)

    return inner


def by_reading(key: int) -> None:
    local = {1: TABLE[1.0]}
    local[key] = TABLE.get(key, 0.0)


@pytest.mark.parametrize(
    ("function", "filled"),
    [
        (by_item, [TABLE]),
        (by_sum, [CALLS]),
        (by_deletion, [COUNTED]),
        (by_method, [COUNTED]),
        (by_item_of_item, [STATE]),
        (within, [TABLE, COUNTED]),
        (by_a_module, [sys.argv]),
        (by_a_type_of_users, []),
        (by_reading, []),
    ],
)
def test_the_containers_that_a_function_changes_are_found(function: Any, filled: list[Any]) -> None:
    found = containers_filled_by([function], ())
    assert sorted(map(id, found)) == sorted(map(id, filled))


def test_without_positions_in_the_source_nothing_is_found() -> None:
    program = """
from cachegraph.fingerprint.filled import containers_filled_by
MEMO = {}
def fill(): MEMO[1] = 2
print(containers_filled_by([fill], ()))
"""
    found = [
        subprocess.run([sys.executable, *option, "-c", program], capture_output=True, text=True, check=True)
        for option in ([], ["-X", "no_debug_ranges"])
    ]
    assert [done.stdout for done in found] == ["[{}]\n", "[]\n"]
