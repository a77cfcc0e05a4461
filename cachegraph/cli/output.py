"""How commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = 3
"""The columns between two columns of a table."""


def print_json(value: object) -> None:
    """Print `value` as one JSON document."""
    typer.echo(json.dumps(value, indent=2))


def print_line(text: str = "") -> None:
    """Print a line as it is."""
    typer.echo(text)


def print_table(columns: dict[str, str], rows: Iterable[Iterable[str]]) -> None:
    """Print `rows` under `columns` (name -> left, right or fill: the one that gives way when room is short)."""
    cells = [tuple(row) for row in rows]
    console = Console(highlight=False)
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    needed = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    others = sum(n + GAP for n, kind in zip(needed, columns.values(), strict=True) if kind != "fill")
    for (name, kind), width in zip(columns.items(), needed, strict=True):
        # Left to itself rich shortens, or drops, the other columns for the sake of a long one.
        room = max(len(name), min(width, console.width - others)) if kind == "fill" else width
        justify: Literal["left", "right"] = "right" if kind == "right" else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis", width=room)
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


@contextmanager
def progress(what: str, steps: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how many of `steps` are done, as the function that is yielded is told; elsewhere nothing.

    It is on standard error, so that what a command prints can be redirected.
    """
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda done: bar.advance(task, done)
