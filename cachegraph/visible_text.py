"""Texts of others, as they may be shown: in a terminal, in a log that a terminal shows, on a page."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Return `text` with everything but visible characters escaped, so that a terminal obeys none of it.

    That includes control characters, line breaks, and characters that are invisible or turn the text
    direction.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
