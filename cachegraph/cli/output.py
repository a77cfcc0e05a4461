"""How commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
from collections.abc import Iterable

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_json(value: object) -> None:
    """Print `value` as one JSON document."""
    typer.echo(json.dumps(value, indent=2))


def print_line(text: str = "") -> None:
    """Print a line as it is."""
    typer.echo(text)


def print_table(columns: dict[str, str], rows: Iterable[Iterable[str]]) -> None:
    """Print `rows` under `columns` (name -> left, right or fill: the one that gives way when room is short)."""
    # Only a table that fills the line takes from the filling column alone; others shrink all of them.
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, expand="fill" in columns.values())
    for name, kind in columns.items():
        fills = kind == "fill"
        table.add_column(
            name,
            justify="right" if kind == "right" else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if fills else None,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)
