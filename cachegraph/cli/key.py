"""`cachegraph key`: the key by which others know what this user publishes."""

from __future__ import annotations

from cachegraph.cli.options import JsonOption, fail
from cachegraph.cli.output import print_json, print_line
from cachegraph.errors import NoDirectoryError
from cachegraph.store.signing import key_path, make_own_key, public_key_text


def key_command(as_json: JsonOption = False) -> None:
    """Print your public key, for CACHEGRAPH_TRUST=group:KEY,KEY,...; it is made if there is none."""
    try:
        public = public_key_text(make_own_key())
        path = key_path()
    except (OSError, NoDirectoryError) as error:
        fail(str(error))
    if as_json:
        print_json({"public_key": public, "file": str(path)})
    else:
        print_line(public)
