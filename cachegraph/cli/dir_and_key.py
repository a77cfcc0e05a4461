"""`cachegraph dir` and `cachegraph key`: the directory of the cache, and the key that others know this user
by."""

from __future__ import annotations

from cachegraph.cli.options import DirectoryOption, JsonOption, fail, open_placement
from cachegraph.cli.output import print_json, print_line
from cachegraph.errors import NoDirectoryError
from cachegraph.store.signing import key_path, make_own_key, public_key_text


def dir_command(directory: DirectoryOption = None, as_json: JsonOption = False) -> None:
    """Print the cache directory."""
    path = open_placement(directory).given
    if as_json:
        print_json({"directory": str(path)})
    else:
        print_line(str(path))


def key_command(as_json: JsonOption = False) -> None:
    """Print your public key, for CACHEGRAPH_TRUST=group:KEY,KEY,...; create it if there is none."""
    try:
        public = public_key_text(make_own_key())
        path = key_path()
    except (OSError, NoDirectoryError) as error:
        fail(str(error))
    if as_json:
        print_json({"public_key": public, "file": str(path)})
    else:
        print_line(public)
