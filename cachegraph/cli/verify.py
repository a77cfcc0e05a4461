"""`cachegraph verify`: check everything that is stored, and remove damaged entries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from cachegraph.cli.list import SHOWN_DIGITS
from cachegraph.cli.options import command, directory_option, json_option, open_directory, problems_reported
from cachegraph.cli.output import print_json, print_line, print_table, progress
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.verification import Problem, verify


@command("verify")
@directory_option
@json_option
def verify_command(directory: Path | None, as_json: bool) -> None:
    """Check all checksums, blobs and references, and remove what is damaged.

    Damaged entries are built again when needed, and kept in v1/damaged for a week. Exit code 1 if anything
    was wrong.
    """
    cache = open_directory(directory)
    with problems_reported(cache.local), progress("checking", cache.count_files()) as advance:
        problems = [problem for store in cache.stores for problem in verify(store, advance)]
    if as_json:
        print_json({"directory": str(cache.path), "problems": [problem._asdict() for problem in problems]})
    else:
        _print(cache, problems)
    if problems:
        raise click.exceptions.Exit(1)


def _print(cache: CacheDirectory, problems: Sequence[Problem]) -> None:
    if not problems:
        print_line(
            f"{cache.path}: all is as it was written"
            if cache.exists
            else f"there is no cache in {cache.path} yet"
        )
        return
    columns = {"what": "left", "which": "left", "done": "left", "found": "fill"}
    print_table(columns, ((one.what, one.name[:SHOWN_DIGITS], one.done, one.found) for one in problems))
