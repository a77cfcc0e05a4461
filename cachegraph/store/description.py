"""What an entry may say of itself, where others write: of the declared kinds, and of a size that can be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cachegraph.store.entry import Entry

_TEXTS, _LONGEST_TEXT = ("level", "version"), 100
_LONGEST_SUMMARY = 100_000
_COUNTS, _LARGEST_COUNT = ("format", "payload_size", "blob_size", "stored_size", "uses"), 1 << 62
_TIMES, _LATEST_TIME = ("build_seconds", "load_seconds", "created", "last_used"), 1e12


def refuse_nonsense(entry: Entry) -> None:
    """Raise ValueError unless every field of `entry`, read from where others write, is what it is declared to be."""
    for name in _TEXTS:
        _check(name, entry, lambda value: _is_text(value) and len(value) <= _LONGEST_TEXT)
    for name in _COUNTS:
        _check(name, entry, lambda value: type(value) is int and 0 <= value <= _LARGEST_COUNT)
    for name in _TIMES:
        _check(name, entry, _is_time)
    _check("summary", entry, lambda value: _is_text(value) and len(value) <= _LONGEST_SUMMARY)
    _check("seconds", entry, lambda value: isinstance(value, Mapping) and all(map(_is_time, value.values())))


def _check(name: str, entry: Entry, is_right: Callable[[Any], bool]) -> None:
    value = getattr(entry, name)
    if not is_right(value):
        raise ValueError(f"{name} is {str(value)[:_LONGEST_TEXT]!r}")


def _is_text(value: object) -> bool:
    """Half of a character can be written in JSON, and nowhere else."""
    return type(value) is str and value.encode("utf-8", "replace").decode() == value


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and -_LATEST_TIME < value < _LATEST_TIME  # type: ignore[operator]
