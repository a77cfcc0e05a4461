"""`cachegraph dir`: the directory of the cache."""

from __future__ import annotations

from pathlib import Path

from cachegraph.cli.options import command, directory_option, json_option, open_placement
from cachegraph.cli.output import print_json, print_line


@command("dir")
@directory_option
@json_option
def dir_command(directory: Path | None, as_json: bool) -> None:
    """Print the cache directory."""
    path = open_placement(directory).given
    if as_json:
        print_json({"directory": str(path)})
    else:
        print_line(str(path))
