"""`cachegraph key revoke`: take back what was published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from cachegraph.cli.options import command, fail, json_option, read_settings
from cachegraph.cli.output import print_json, print_line
from cachegraph.errors import NoDirectoryError
from cachegraph.remote_url import RemoteURL
from cachegraph.store.maintenance.revoking import Publisher, record_names, revoke
from cachegraph.store.paths import is_key
from cachegraph.store.remote.opening import open_files
from cachegraph.store.revocation.list_file import RevocationList, Revoked
from cachegraph.store.signing import public_key_text
from cachegraph.store.trust import Trust
from cachegraph.store.trusted_signers import public_key_given
from cachegraph.units import format_count


@command("revoke")
@click.option("--signer", "signers", metavar="KEY", multiple=True, help="All that this public key signed.")
@click.option(
    "--writer",
    "writers",
    metavar="UID@HOST",
    multiple=True,
    help="All that this user wrote on this host, as `cachegraph show` prints it.",
)
@click.option("--release", "releases", multiple=True, help="All that this release of cachegraph wrote.")
@click.option("--entry", "keys", metavar="KEY", multiple=True, help="What is stored under this key now.")
@click.option(
    "--dir",
    "directories",
    type=click.Path(readable=False, path_type=Path),
    multiple=True,
    help="A shared directory to publish this in.",
)
@click.option("--remote", "remotes", metavar="URL", multiple=True, help="A server to publish this on.")
@json_option
def revoke_command(
    signers: Sequence[str],
    writers: Sequence[str],
    releases: Sequence[str],
    keys: Sequence[str],
    directories: Sequence[Path],
    remotes: Sequence[str],
    as_json: bool,
) -> None:
    """Sign and publish that certain entries must not be believed any more; nothing takes that back.

    Who trusts your key refuses them, and removes his copies, within an hour. Every option may be repeated.
    Exit code 1 if a place cannot be written.
    """
    try:
        publishers = [*_directories(directories), *_servers(remotes)]
        if not publishers:
            fail("revoking where? give --dir or --remote, as the readers' settings do", code=2)
        revoked = _revoked(signers, writers, releases, _entries(publishers, keys))
        if not any(revoked):
            fail("revoking what? give --signer, --writer, --release or --entry", code=2)
        written = revoke(publishers, revoked)
    except FileNotFoundError as error:
        fail(f"{error}; `cachegraph key new` makes a key to sign with")
    except ValueError as error:
        fail(str(error), code=2)
    except (OSError, NoDirectoryError) as error:
        fail(str(error))
    _print(written, [publisher.location for publisher in publishers], as_json)


def _directories(given: Sequence[Path]) -> Iterator[Publisher]:
    trust = Trust.of(read_settings(None).trust)
    for directory in given:
        if trust.signers is None:
            fail(
                f"CACHEGRAPH_TRUST is {trust.policy}: entries in {directory} are not signed, and no list of "
                "revocations is read there; set it as the readers do, to signed or group",
                code=2,
            )
        if not directory.is_dir():
            fail(f"there is no directory {directory}", code=2)
        yield Publisher.of_directory(directory.absolute(), trust)


def _servers(given: Sequence[str]) -> Iterator[Publisher]:
    for text in given:
        url = RemoteURL.of(text)
        if not url.may_write:
            fail(f"{url.location} is only read; revoke where its entries are written", code=2)
        yield Publisher.of_server(open_files(url))


def _entries(publishers: list[Publisher], keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text in keys:
        key = text.lower()
        if not is_key(key):
            fail(
                f"--entry: {text!r} is no key of 32 hexadecimal digits; `cachegraph list --json` has them",
                code=2,
            )
        found = record_names(publishers, key)
        if not found:
            fail(f"there is no entry of {key} in {', '.join(one.location for one in publishers)}")
        yield from ((key, name) for name in found)


def _revoked(
    signers: Sequence[str],
    writers: Sequence[str],
    releases: Sequence[str],
    entries: Iterator[tuple[str, str]],
) -> Revoked:
    keys = (public_key_given(text).hex() for text in signers)
    return Revoked(frozenset(keys), frozenset(writers), frozenset(releases), frozenset(entries))


def _print(written: RevocationList, locations: list[str], as_json: bool) -> None:
    held = {name: sorted(getattr(written.revoked, name)) for name in Revoked._fields}
    if as_json:
        print_json({"number": written.number, "revoked": held, "published": locations})
        return
    count = format_count(sum(map(len, held.values())), "revocation")
    print_line(f"list {written.number} of {public_key_text(written.signer)}, with {count}, is in:")
    for location in locations:
        print_line(f"  {location}")
