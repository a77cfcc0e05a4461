"""The output of commands: JSON for programs, lines and tables for people.

All text for people goes through `one_line`: others wrote the texts in a store, and a terminal obeys
escape sequences. On a terminal, what is wider than it goes on in the next line, indented; elsewhere it
stays one line. Tables are printed as their rows arrive, so a hundred thousand rows take no memory.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TextIO

import click

from cachegraph.visible_text import one_line
from cachegraph.waiting_line import shown_if_long

GAP = 3
"""Spaces between the columns of a table."""

_ELLIPSIS = "…"
_MEASURED = 500  # rows measured for the column widths
_WIDTH = 80  # columns, if there is no terminal
_LONG = 1.0  # seconds after which progress is shown


def print_json(value: object) -> None:
    """Print `value` as one JSON document; iterators become arrays, printed item by item."""
    for piece in _json_pieces(value, "\n"):
        sys.stdout.write(piece)
    sys.stdout.write("\n")


def print_line(text: str = "") -> None:
    """Print one line, or on a terminal as many as it needs."""
    for line in _lines(text, sys.stdout):
        click.echo(line)


def print_problem(text: str) -> None:
    """Print one line to standard error, or on a terminal as many as it needs."""
    for line in _lines(f"cachegraph: {text}", sys.stderr):
        click.echo(line, err=True)


def print_table(columns: dict[str, str], rows: Iterable[Iterable[str]]) -> None:
    """Print `rows` under `columns` (name -> left, right or fill; fill is the column that shrinks)."""
    cells = (tuple(map(one_line, row)) for row in rows)
    first = list(islice(cells, _MEASURED))
    widths = _widths(columns, first)
    kinds = list(columns.values())
    print_line(_row(tuple(columns), widths, kinds))
    print_line("-" * int(min(sum(widths) + GAP * (len(widths) - 1), _room(sys.stdout))))
    for row in chain(first, cells):
        print_line(_row(row, widths, kinds))


@contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how many of `steps` are done, if that takes long; call the yielded function to
    advance. Elsewhere, do nothing.

    Progress goes to standard error, so that the output of the command can be redirected.
    """
    with shown_if_long(what, _LONG) as show:
        count = 0

        def advance(done: int) -> None:
            nonlocal count
            count += done
            show(f"{what}: {count} of {steps}")

        yield advance


def _lines(text: str, stream: TextIO) -> Iterator[str]:
    """Yield `text` as one line that `stream` can encode, or as several that a terminal has room for."""
    line = _encodable(one_line(text), stream)
    room = _room(stream)
    yield from [line] if _width(line) <= room else _wrapped(line, int(room))


def _room(stream: TextIO) -> float:
    """Return the columns of the terminal that `stream` is, or infinity if it is none."""
    if not stream.isatty():
        return math.inf
    return max(shutil.get_terminal_size((_WIDTH, 0)).columns, 2 * GAP + 1)


def _wrapped(line: str, width: int) -> Iterator[str]:
    import textwrap

    indent = " " * GAP
    for part in textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False):
        if _width(part) <= width:
            yield part
            continue
        from rich.cells import chop_cells  # characters that take two columns

        yield from (f"{indent}{piece}" for piece in chop_cells(part.strip(), width - GAP))


def _encodable(text: str, stream: TextIO) -> str:
    """Return `text` with characters that `stream` cannot encode escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _widths(columns: Mapping[str, str], rows: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the column widths: those of the widest cells, but the fill column takes the rest."""
    needed = [max(map(_width, column)) for column in zip(columns, *rows, strict=True)]
    others = sum(n + GAP for n, kind in zip(needed, columns.values(), strict=True) if kind != "fill")
    room = shutil.get_terminal_size((_WIDTH, 0)).columns - others
    return [
        max(_width(name), min(width, room)) if kind == "fill" else width
        for (name, kind), width in zip(columns.items(), needed, strict=True)
    ]


def _row(cells: Sequence[str], widths: Sequence[int], kinds: Sequence[str]) -> str:
    padded = []
    for cell, width, kind in zip(cells, widths, kinds, strict=True):
        shown = _shortened(cell, width) if kind == "fill" else cell
        space = " " * (width - _width(shown))
        padded.append(space + shown if kind == "right" else shown + space)
    return (" " * GAP).join(padded).rstrip()


def _shortened(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    ellipsis = _ELLIPSIS if _encodable(_ELLIPSIS, sys.stdout) == _ELLIPSIS else "..."
    while text and _width(text) > width - len(ellipsis):
        text = text[: min(len(text) - 1, width - len(ellipsis))]
    return text + ellipsis


def _width(text: str) -> int:
    """Return how many columns of a terminal `text` takes: some characters take two, some none."""
    if text.removesuffix(_ELLIPSIS).isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _json_pieces(value: object, line: str) -> Iterator[str]:
    """Yield the JSON document of `value`, indented; `line` is a line break with the current indentation."""
    if isinstance(value, Iterator):
        yield from _enclosed("[]", (_json_pieces(item, f"{line}  ") for item in value), line)
    elif isinstance(value, dict):
        yield from _enclosed("{}", (_member(name, item, f"{line}  ") for name, item in value.items()), line)
    else:
        yield json.dumps(value, indent=2).replace("\n", line)


def _member(name: str, value: object, line: str) -> Iterator[str]:
    return chain((f"{json.dumps(name)}: ",), _json_pieces(value, line))


def _enclosed(brackets: str, items: Iterable[Iterator[str]], line: str) -> Iterator[str]:
    is_empty = True
    yield brackets[0]
    for item in items:
        yield f"{line}  " if is_empty else f",{line}  "
        is_empty = False
        yield from item
    yield brackets[1] if is_empty else f"{line}{brackets[1]}"
