"""`cachegraph report FILE.html`: the cache as one page for a browser."""

from __future__ import annotations

from pathlib import Path

import click

from cachegraph.cli.options import command, directory_option, fail, open_directory
from cachegraph.cli.output import print_line, print_problem
from cachegraph.report.contents import Gathering
from cachegraph.report.page import page, write_page
from cachegraph.units import format_size


@command("report")
@click.argument("path", metavar="FILE.html", type=click.Path(readable=False, path_type=Path))
@click.option(
    "--log",
    metavar="FILE",
    type=click.Path(readable=False, path_type=Path),
    help="A log of CACHEGRAPH_LOG: show its last run decision by decision.",
)
@directory_option
def report_command(path: Path, log: Path | None, directory: Path | None) -> None:
    """Write a page with hits, misses, costs, sizes, evictions and the last run; it needs no network.

    FILE.html is replaced. Exit code 1 if something could not be read: the page says what, and shows the rest.
    """
    cache = open_directory(directory)
    gathering = Gathering(cache, log)
    graphs = gathering.graphs()
    text = page(gathering.document(), graphs)
    try:
        write_page(path, text)
    except OSError as error:
        fail(f"writing the report {path}: {error.strerror or error}")
    print_line(f"{path}: {format_size(len(text.encode()))}")
    for problem in gathering.problems:
        print_problem(problem)
    if gathering.problems:
        raise click.exceptions.Exit(1)
