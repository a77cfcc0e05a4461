"""Containers at the top of modules that functions change: memos, counters, logs.

    MEMO = {}

    def square(x):
        if x not in MEMO:
            MEMO[x] = x * x  # square fills MEMO
        return MEMO[x]

Their content is a result of earlier calls. A key for what those calls give holds it; a key for code
that only refers to the function need not.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from types import FunctionType

from cachegraph.fingerprint.bytecode import GlobalRead, changed_in_place, look_up, reads
from cachegraph.fingerprint.origin import is_known_by_name

CONTAINERS = frozenset((dict, list, set, bytearray, Counter, OrderedDict, defaultdict, deque))
"""The types of containers, exactly: a class of a user's may compute anything when it is changed."""


def containers_filled_by(functions: Iterable[FunctionType], described: Collection[str]) -> list[object]:
    """Return the global containers that `functions`, or followed functions they read, change by name.

    Finds `NAME[key] = value`, `del NAME[key]`, calls such as `NAME.append(value)`, and the same on
    `module.NAME`; other changes, such as one through a local name, are not found.
    """
    found: dict[int, object] = {}
    for function in _reached(functions, described):
        for read in changed_in_place(function.__code__):
            value = _value(function, read)
            if type(value) in CONTAINERS:
                found[id(value)] = value
    return list(found.values())


def _reached(functions: Iterable[FunctionType], described: Collection[str]) -> Iterator[FunctionType]:
    seen: set[FunctionType] = set()
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        if function in seen or is_known_by_name(function, described):
            continue
        seen.add(function)
        yield function
        values = (_value(function, read) for read in reads(function.__code__))
        waiting.extend(value for value in values if isinstance(value, FunctionType))


def _value(function: FunctionType, read: GlobalRead) -> object:
    return look_up(function.__globals__, read)[0] if read.name in function.__globals__ else None
