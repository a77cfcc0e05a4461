"""The path of an object within a value, as a pickler would reach it."""

from __future__ import annotations

import copyreg
import functools
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

_LONGEST_KEY = 40


def path_within(value: object, item: object) -> tuple[str, ...]:
    """Return the segments from `value` to `item`, such as `['f']` and `args[0]`; empty if they are the same.

    The path is "..." if the item is not found: an object may give a pickler new parts each time.
    """
    held = [value]  # by id, and kept alive: an id must not be used twice
    seen = {id(value)}
    waiting: list[tuple[object, tuple[str, ...]]] = [(value, ())]
    while waiting:
        found, way = waiting.pop()
        if found is item:
            return way
        children = [(child, segment) for segment, child in _children(found) if id(child) not in seen]
        seen.update(id(child) for child, _ in children)
        held += [child for child, _ in children]
        waiting += [(child, (*way, segment)) for child, segment in reversed(children)]
    return ("...",)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from _items(value)
    elif isinstance(value, list | tuple):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from (("{...}", item) for item in value)
    elif isinstance(value, functools.partial):
        yield "func", value.func
        yield from ((f"args[{number}]", item) for number, item in enumerate(value.args))
        yield from ((f"keywords{key}", item) for key, item in _items(value.keywords))
    elif isinstance(value, MethodType):
        yield from (("__self__", value.__self__), ("__func__", value.__func__))
    elif isinstance(value, FunctionType):
        yield from _of_function(value)
    elif not isinstance(value, type | ModuleType | str | bytes | int | float | complex | None):
        yield from _of_instance(value)


def _items(value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        yield f"key {_key(key)}", key
        yield f"[{_key(key)}]", item


def _key(key: object) -> str:
    if isinstance(key, str | bytes | int | float):
        return repr(key) if len(repr(key)) <= _LONGEST_KEY else f"{repr(key)[:_LONGEST_KEY]}..."
    return type(key).__name__


def _of_function(value: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what the code of a function that is pickled by value reads."""
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        try:
            yield f"cell {name!r}", cell.cell_contents
        except ValueError:  # the cell is still empty
            continue
    for name in value.__code__.co_names:
        if name in value.__globals__:
            yield f"global {name!r}", value.__globals__[name]
    yield from ((f"defaults[{number}]", item) for number, item in enumerate(value.__defaults__ or ()))
    yield from ((f"attribute {name}", item) for name, item in vars(value).items())


def _of_instance(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what the reduction of an instance holds: its arguments, its state, its items."""
    reduce = copyreg.dispatch_table.get(type(value))
    try:
        reduced = value.__reduce_ex__(5) if reduce is None else reduce(value)
    except Exception:  # its class may raise anything; then pickle reached nothing in it, either
        return
    if not isinstance(reduced, tuple):
        return
    parts: list[Any] = [*reduced, None, None, None, None]
    arguments, state, items, pairs = parts[1:5]
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, dict):
            yield from ((f".{name}", item) for name, item in part.items())
        elif part is not None:
            yield "state", part
    yield from ((f"argument {number}", item) for number, item in enumerate(arguments or ()))
    yield from ((f"[{number}]", item) for number, item in enumerate(items or ()))
    yield from ((f"[{_key(key)}]", item) for key, item in pairs or ())
