"""How a function was made, in words: as lines of text, and as a table of HTML for notebooks.

Reasons and names are others' texts: nothing of them is markup. The table takes its colours from the page,
so that it can be read on dark ones too. All functions take a CacheInfo (outcome.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from types import SimpleNamespace

_TOTAL = "total"
_CELL = "text-align:left;vertical-align:top;padding:0.1em 1em 0.1em 0;background:transparent;color:inherit"


def as_text(info: SimpleNamespace) -> str:
    """Return `info` as lines: the outcome, then a line for each fact that there is."""
    return "\n".join([_outcome(info), *(f"{name:<8} {what}" for name, what in _facts(info))])


def as_html(info: SimpleNamespace) -> str:
    """Return `info` as a table of HTML."""
    rows = "".join(
        f'<tr style="background:transparent"><th scope="row" style="{_CELL}">{name}</th>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{_escaped(what)}</td></tr>'
        for name, what in [("outcome", _outcome(info)), *_facts(info)]
    )
    return (
        '<table class="cachegraph-info" '
        f'style="border-collapse:collapse;background:transparent;color:inherit"><tbody>{rows}</tbody></table>'
    )


def _outcome(info: SimpleNamespace) -> str:
    return f"{info.outcome}: {info.reason}" if info.reason else info.outcome


def _facts(info: SimpleNamespace) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each fact."""
    if info.key:
        yield "key", info.key
    found = [f"{level} {hits} of {hits + misses}" for level, (hits, misses) in info.found.items()]
    if found:
        yield "found", ", ".join(found)
    if info.seconds:
        yield "seconds", _seconds(info.seconds)
    if info.seconds_saved:
        yield "saved", f"{info.seconds_saved:.2f} seconds"
    work = [f"{n} {what}{'s' * (n != 1)}" for n, what in _work(info) if n]
    if work:
        yield "work", ", ".join(work)


def _work(info: SimpleNamespace) -> tuple[tuple[int, str], ...]:
    return (info.rewrites, "rewrite"), (info.compilations, "compilation")


def _seconds(seconds: Mapping[str, float]) -> str:
    steps = ", ".join(f"{step} {spent:.2f}" for step, spent in seconds.items() if step != _TOTAL)
    if _TOTAL not in seconds:
        return steps
    total = f"{seconds[_TOTAL]:.2f}"
    return f"{total}: {steps}" if steps else total


def _escaped(text: str) -> str:
    # A lone surrogate, of a file's name, has no place in a page.
    return escape(text.encode("utf-8", "backslashreplace").decode())
