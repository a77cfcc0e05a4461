"""`cachegraph clear`: remove everything."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cachegraph.cli.options import DirectoryOption, JsonOption, fail, open_store, problems_reported
from cachegraph.cli.output import print_json, print_line
from cachegraph.cli.units import format_size
from cachegraph.store.clearing import clear
from cachegraph.store.usage import bytes_on_disk


def clear_command(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    directory: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove every entry, a damaged index included. Jobs that use the cache begin a new one."""
    store = open_store(directory)
    with problems_reported(store):
        size = bytes_on_disk(store.layout)
        there = store.layout.root.exists()
        if there and not yes:
            _ask(f"remove {format_size(size)} in {store.layout.root}?")
        cleared = there and clear(store.layout)
    if as_json:
        print_json({"directory": str(store.layout.directory), "bytes": size if cleared else 0})
    else:
        print_line(f"removed {format_size(size)}" if cleared else f"nothing in {store.layout.directory}")


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        fail("clear asks first, and there is no terminal to ask on; give --yes", code=2)
    typer.confirm(question, abort=True, err=True)
