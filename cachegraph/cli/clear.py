"""`cachegraph clear`: remove everything."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cachegraph.cli.options import (
    command,
    directory_option,
    fail,
    json_option,
    open_placement,
    problems_reported,
)
from cachegraph.cli.output import print_json, print_line
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.directory import bytes_on_disk, clear
from cachegraph.store.paths import Layout, SharedLayout
from cachegraph.units import format_size


@command("clear")
@click.option("--yes", is_flag=True, help="Do not ask.")
@directory_option
@json_option
def clear_command(yes: bool, directory: Path | None, as_json: bool) -> None:
    """Remove every entry, and a damaged index, too. Running jobs start a new cache."""
    placement = open_placement(directory)
    store = LocalStore(placement.local.directory)
    layouts: list[Layout | SharedLayout] = [store.layout]
    if placement.on_node:
        # The files first: the index alone is only slow, but the files would fill it again.
        layouts.insert(0, SharedLayout(placement.shared[0].directory))
    place = layouts[0].directory
    with problems_reported(store):
        there = [layout for layout in layouts if layout.root.exists()]
        size = sum(bytes_on_disk(layout) for layout in there)
        if there and not yes:
            _ask(f"remove {format_size(size)} in {' and '.join(str(layout.root) for layout in there)}?")
        cleared = sum(clear(layout) for layout in there) > 0
    if as_json:
        print_json({"directory": str(place), "bytes": size if cleared else 0})
    else:
        print_line(f"removed {format_size(size)}" if cleared else f"nothing in {place}")


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        fail("clear asks first, and there is no terminal to ask on; give --yes", code=2)
    click.confirm(question, abort=True, err=True)
