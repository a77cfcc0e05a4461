"""`cachegraph dir`: where the cache is."""

from __future__ import annotations

from cachegraph.cli.options import DirectoryOption, JsonOption, open_placement
from cachegraph.cli.output import print_json, print_line


def dir_command(directory: DirectoryOption = None, as_json: JsonOption = False) -> None:
    """Print the cache directory."""
    path = open_placement(directory).given
    if as_json:
        print_json({"directory": str(path)})
    else:
        print_line(str(path))
