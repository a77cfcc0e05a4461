"""`cachegraph export` and `cachegraph import`: entries of a cache in one file."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import click

from cachegraph.cli.list import SHOWN_DIGITS
from cachegraph.cli.options import (
    command,
    directory_option,
    fail,
    json_option,
    key_prefix,
    open_directory,
    open_placement,
    parsed,
    problems_reported,
    read_settings,
)
from cachegraph.cli.output import print_json, print_line, print_problem, print_table, progress
from cachegraph.errors import NoDirectoryError
from cachegraph.remote_url import RemoteURL
from cachegraph.store.local.runs import last_run_began
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.exporting import Exported, LeftOut, export
from cachegraph.store.maintenance.importing import Imported, entry_keys, import_entries
from cachegraph.store.remote.bundle_files import BundleFiles
from cachegraph.store.remote.files import RemoteError
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.revocation.reading import Revocations
from cachegraph.store.signing import own_public_key
from cachegraph.store.trust import Trust
from cachegraph.units import format_count, format_size, parse_duration

file_argument = click.argument("file", type=click.Path(readable=False, path_type=Path))


def _when(text: str) -> float:
    try:
        return time.time() - parse_duration(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ValueError(
            f"{text!r} is neither an age such as 2h or 7d nor a time such as 2026-11-23T12:00"
        ) from None


@command("export")
@file_argument
@click.option(
    "--used-by-last-run",
    is_flag=True,
    help="Only entries used by the last process, or by several that ran at the same time.",
)
@click.option(
    "--key",
    "prefixes",
    type=key_prefix,
    metavar="KEY",
    multiple=True,
    help="Only this entry, by its key or its first digits; repeatable.",
)
@click.option(
    "--since",
    type=parsed(_when),
    metavar="T",
    help="Only entries used since, e.g. 2h or 2026-11-23T12:00.",
)
@click.option("--all", "everything", is_flag=True, help="All entries (default).")
@directory_option
@json_option
def export_command(
    file: Path,
    used_by_last_run: bool,
    prefixes: Sequence[str],
    since: float | None,
    everything: bool,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Write entries, and all that they refer to, into one signed file.

    FILE is the bundle. Exit code 1 if an entry could not be exported, or lacks one that it refers to.
    """
    if sum((used_by_last_run, bool(prefixes), since is not None, everything)) > 1:
        fail("give one of --used-by-last-run, --key, --since and --all", code=2)
    cache = open_directory(directory)
    _need_own_key()
    with problems_reported(cache.local):
        chosen = _chosen(cache, used_by_last_run, prefixes, since)
        if not chosen:
            fail(f"there is nothing to export in {cache.path}")
        with progress("exporting", len(chosen)) as advance:
            signers = Trust.on_servers(read_settings(directory).trust).signers or ()
            exported = export(cache, chosen, str(file), advance, signers)
    if as_json:
        left_out = [one._asdict() for one in exported.left_out]
        print_json({"file": str(file), **exported._asdict(), "left_out": left_out})
    else:
        _print_exported(exported, file)
    if exported.left_out or exported.missing:
        raise click.exceptions.Exit(1)


@command("import")
@file_argument
@directory_option
@json_option
def import_command(file: Path, directory: Path | None, as_json: bool) -> None:
    """Take the entries of a bundle into the cache, if a trusted key signed them.

    FILE is the bundle. Exit code 1 if the bundle cannot be read, or an entry was refused.
    """
    settings = read_settings(directory)
    placement = open_placement(directory)
    into = placement.open(settings.max_size)
    url = RemoteURL.of(f"bundle:{quote(os.path.abspath(file))}")
    trust = Trust.on_servers(settings.trust)
    node = LocalStore(placement.local.directory).revocations()
    bundle = RemoteStore(BundleFiles(url), trust, revocations=Revocations(trust.signers or (), node))
    try:
        with progress("importing", sum(1 for _ in entry_keys(bundle))) as advance:
            imported = import_entries(bundle, into, advance)
    except RemoteError as error:
        fail(f"importing {file}: {error.what}")
    finally:
        into.close()
    if as_json:
        refused = [one._asdict() for one in imported.refused]
        print_json({"file": str(file), **imported._asdict(), "refused": refused})
    else:
        _print_imported(imported, file)
    if imported.refused:
        raise click.exceptions.Exit(1)


def _need_own_key() -> None:
    try:
        own = own_public_key()
    except (NoDirectoryError, OSError) as error:
        fail(str(error))
    if own is None:
        fail("there is no key to sign with; `cachegraph key new` makes one")


def _chosen(
    cache: CacheDirectory, used_by_last_run: bool, prefixes: Sequence[str], since: float | None
) -> Collection[bytes]:
    if prefixes:
        return {_only(cache, prefix) for prefix in prefixes}
    if used_by_last_run:
        since = last_run_began(cache.local.database.select_all)
        if since is None:
            fail(f"no process has used {cache.path} yet")
    return {
        entry.digest
        for entry in cache.listed("key", None, print_problem)
        if since is None or entry.last_used >= since
    }


def _only(cache: CacheDirectory, prefix: str) -> bytes:
    found = cache.keys(prefix, 2)
    if len(found) != 1:
        several = "several keys start" if found else "no key starts"
        fail(f"in {cache.path}, {several} with {prefix}")
    return found[0]


def _print_exported(exported: Exported, file: Path) -> None:
    _print_left_out("left out", exported.left_out)
    if exported.missing:
        print_problem(
            f"{format_count(len(exported.missing), 'entry', 'entries')} that others refer to, such as "
            f"{exported.missing[0]}, are not in the cache: they will be built again"
        )
    entries = format_count(exported.entries, "entry", "entries")
    print_line(f"exported {entries}, {format_size(exported.bytes)}, to {file}")


def _print_imported(imported: Imported, file: Path) -> None:
    _print_left_out("refused", imported.refused)
    entries = format_count(len(imported.taken), "entry", "entries")
    others = f"{len(imported.present)} were there, {len(imported.refused)} refused"
    print_line(f"imported {entries} of {file}; {others}")


def _print_left_out(title: str, left_out: Iterable[LeftOut]) -> None:
    rows = [(one.key[:SHOWN_DIGITS], one.why) for one in left_out]
    if rows:
        print_table({title: "left", "why": "left"}, rows)
        print_line()
