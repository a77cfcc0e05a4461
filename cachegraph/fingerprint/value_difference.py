"""The first difference of two encoded values, for people."""

from __future__ import annotations

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.decoder import Decoded, decode
from cachegraph.fingerprint.primitives import digest
from cachegraph.named_tuples import NamedTuple

_SHOWN = 60
_BEFORE = 20
"""Characters before the first difference of long texts that are shown."""


class Difference(NamedTuple):
    """The first difference of two values: its `path` (empty for the values themselves) and both texts
    there."""

    path: str
    wanted: str
    stored: str

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"{place}{self.wanted}, stored {self.stored}"


def describe_difference(wanted: bytes, stored: bytes) -> str:
    """Return the first difference of two encodings in one line; their digests if they cannot be decoded."""
    try:
        difference = first_difference(decode(wanted), decode(stored))
    except (InvalidEncoding, RecursionError):
        return f"digest {digest(wanted).hex()}, stored {digest(stored).hex()}"
    return str(difference or "none that can be read")


def first_difference(wanted: Decoded, stored: Decoded) -> Difference | None:
    """Return the first difference of two values; None if they are equal."""
    if wanted == stored:
        return None
    labels = [label for label, _ in wanted.parts]
    if labels and labels == [label for label, _ in stored.parts]:
        for (label, one), (_, other) in zip(wanted.parts, stored.parts, strict=True):
            inner = first_difference(one, other)
            if inner is not None:
                return inner._replace(path=label + inner.path)
    return Difference("", *_windows(wanted.text, stored.text))


def _windows(wanted: str, stored: str) -> tuple[str, str]:
    """Return two texts, if they are long the piece around their first difference."""
    same = next((n for n, pair in enumerate(zip(wanted, stored, strict=False)) if len(set(pair)) > 1), None)
    start = max(min(len(wanted), len(stored)) if same is None else same, _BEFORE) - _BEFORE
    return _window(wanted, start), _window(stored, start)


def _window(text: str, start: int) -> str:
    if len(text) <= _SHOWN:
        return text
    before = "... " if start else ""
    shown = text[start : start + _SHOWN]
    return f"{before}{shown}{' ...' if start + _SHOWN < len(text) else ''}"
