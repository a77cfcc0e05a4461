"""`cachegraph key`: the key that this user signs with, and the keys that this user trusts."""

from __future__ import annotations

import click

from cachegraph.cli.exit_codes import EXIT_CODES
from cachegraph.cli.options import Group, command, fail, json_option
from cachegraph.cli.output import print_json, print_line, print_problem, print_table
from cachegraph.cli.revoke import revoke_command
from cachegraph.errors import NoDirectoryError
from cachegraph.store.signing import key_path, make_own_key, own_public_key, public_key_text
from cachegraph.store.trusted_signers import (
    TrustedSigner,
    public_key_given,
    trust_list_path,
    trust_signer,
    trusted_signers,
)


@command("new")
@json_option
def new_command(as_json: bool) -> None:
    """Make your key and print its public half, which others trust. Exit code 1 if there is one."""
    try:
        public, path = public_key_text(make_own_key()), str(key_path())
    except FileExistsError as error:
        fail(str(error))
    except (OSError, NoDirectoryError) as error:
        fail(f"making a key: {error}")
    if as_json:
        print_json({"public_key": public, "file": path})
    else:
        print_line(public)


@command("show")
@json_option
def show_command(as_json: bool) -> None:
    """Print your public key and those that you trust. Exit code 1 if a file of them cannot be used."""
    try:
        own, trusted = own_public_key(), trusted_signers()
        files = str(key_path()), str(trust_list_path())
    except (OSError, NoDirectoryError) as error:
        fail(str(error))
    public = None if own is None else public_key_text(own)
    listed = [{"public_key": public_key_text(signer.key), "name": signer.name} for signer in trusted]
    if as_json:
        print_json({"public_key": public, "file": files[0], "trusted": listed, "trust_list": files[1]})
        return
    if public is None:
        print_problem("you have no key, so you only read what others sign; `cachegraph key new` makes one")
    own_row = [] if public is None else [(public, "you")]
    rows = [*own_row, *((signer["public_key"], signer["name"]) for signer in listed)]
    if rows:
        print_table({"key": "left", "whose": "left"}, rows)


@command("trust")
@click.argument("signer", metavar="KEY")
@click.option("--name", default="", help="Whose key it is, for people.")
def trust_command(signer: str, name: str) -> None:
    """Believe the entries that a key signed, where CACHEGRAPH_TRUST is `signed`. They run code as you.

    KEY is a public key as `cachegraph key show` prints it, its 64 hexadecimal digits, or a file with it.
    Exit code 2 for something else than a key.
    """
    try:
        key = public_key_given(signer)
        is_new = trust_signer(TrustedSigner(key, name))
    except ValueError as error:
        fail(str(error), code=2)
    except (OSError, NoDirectoryError) as error:
        fail(f"trusting the key {signer}, which is read as a file unless it has 64 digits: {error}")
    text = public_key_text(key)
    print_line(f"trusting {text}" if is_new else f"{text} is trusted already")


key_group = Group(
    "key",
    [new_command, show_command, trust_command, revoke_command],
    help="Make, show and trust the keys that sign entries, and revoke entries.",
    epilog=EXIT_CODES,
)
