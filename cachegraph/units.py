"""Sizes, durations and ages, as people write and read them."""

from __future__ import annotations

_SIZES = {"": 1, "b": 1}
_SIZES |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)}
_SIZES |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}
_SIZES |= {letter: 1000**power for power, letter in enumerate("kmgt", 1)}
SECONDS_OF_UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""The units of format_seconds."""
_NOW = "now"
_LARGEST = 2.0**62
_DURATIONS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def parse_size(text: str) -> int:
    """Return the bytes of a text such as `5GB`, `1.5 MiB` or `4096`; raises ValueError for anything else."""
    return int(_parse(text, _SIZES, "a size such as 5GB, 500MB or 1GiB"))


def parse_duration(text: str) -> float:
    """Return the seconds of a text such as `90d`, `12h` or `2w`; raises ValueError for others, bare numbers
    included."""
    return _parse(text, _DURATIONS, "a duration such as 90d, 12h or 2w")


def format_size(size: float) -> str:
    """Return `size` bytes in at most 7 characters: `640 B`, `1.2 kB`, `12.3 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def format_seconds(seconds: float) -> str:
    """Return a time span, which may be negative, to three digits: `0 s`, `12.3 ms`, `4.56 s`, `12.3 min`,
    `4.5 h`."""
    if seconds < 0:
        return f"-{format_seconds(-seconds)}"
    if seconds == 0:
        return "0 s"
    for limit, unit in ((1e-3, "us"), (1.0, "ms"), (120.0, "s"), (7200.0, "min")):
        if seconds < limit:
            return f"{seconds / SECONDS_OF_UNIT[unit]:.3g} {unit}"
    return f"{seconds / 3600:.1f} h"


def format_duration(seconds: float) -> str:
    """Return `seconds` in the largest unit that gives a whole number: `90d`, `36h`, `0.5s` (see
    parse_duration)."""
    for unit, factor in reversed(_DURATIONS.items()):
        if unit != "w" and seconds >= factor and seconds % factor == 0:
            return f"{seconds / factor:.0f}{unit}"
    return f"{seconds:g}s"


def format_ago(seconds: float) -> str:
    """Return an age in words: `just now`, `5 min ago`."""
    age = format_age(seconds)
    return "just now" if age == _NOW else f"{age} ago"


def format_count(count: int, thing: str, things: str = "") -> str:
    """Return a count with its noun: `1 time`, `2 times`; `things` is the plural if it is not `thing` with an
    s."""
    return f"{count} {thing}" if count == 1 else f"{count} {things or f'{thing}s'}"


def format_age(seconds: float) -> str:
    """Return an age: `now`, `5 min`, `3 h`, `12 d`."""
    if seconds < 60:
        return _NOW
    for limit, factor, unit in ((7200, 60, "min"), (2 * 86400, 3600, "h")):
        if seconds < limit:
            return f"{seconds / factor:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def _parse(text: str, units: dict[str, int], expected: str) -> float:
    number = text.strip().rstrip(_LETTERS)
    unit = text.strip().removeprefix(number).lower()
    whole, point, rest = number.rstrip().partition(".")
    if not whole.isdecimal() or (point and not rest.isdecimal()) or unit not in units:
        raise ValueError(f"{text!r} is not {expected}")
    found = float(f"{whole}{point}{rest}") * units[unit]
    if found > _LARGEST:
        raise ValueError(f"{text!r} is beyond all that there is; give {expected}")
    return found
