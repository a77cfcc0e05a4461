"""`cachegraph export` and `cachegraph import`: entries of a cache in one file."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from cachegraph.cli.list import SHOWN_DIGITS
from cachegraph.cli.options import (
    DirectoryOption,
    JsonOption,
    fail,
    open_directory,
    open_placement,
    problems_reported,
    read_settings,
)
from cachegraph.cli.output import print_json, print_line, print_problem, print_table, progress
from cachegraph.errors import NoDirectoryError
from cachegraph.remote_url import RemoteURL
from cachegraph.store.local.runs import last_run_began
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.exporting import Exported, LeftOut, export
from cachegraph.store.maintenance.importing import Imported, entry_keys, import_entries
from cachegraph.store.remote.bundle_files import BundleFiles
from cachegraph.store.remote.files import RemoteError
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.signing import UnusableKey, own_public_key
from cachegraph.store.trust import Trust
from cachegraph.units import format_count, format_size, parse_duration

FileArgument = Annotated[Path, typer.Argument(help="The bundle.", readable=False, show_default=False)]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="KEY", help="Only this entry, by its key or its first digits; repeatable."),
]


def _when(text: str) -> float:
    try:
        return time.time() - parse_duration(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither an age such as 2h or 7d nor a time such as 2026-11-23T12:00"
        ) from None


SinceOption = Annotated[
    float | None,
    typer.Option(
        "--since", parser=_when, metavar="T", help="Only entries used since, e.g. 2h or 2026-11-23T12:00."
    ),
]


def export_command(
    file: FileArgument,
    used_by_last_run: Annotated[
        bool,
        typer.Option(
            "--used-by-last-run",
            help="Only entries used by the last process, or by several that ran at the same time.",
        ),
    ] = False,
    key: KeyOption = None,
    since: SinceOption = None,
    everything: Annotated[bool, typer.Option("--all", help="All entries (default).")] = False,
    directory: DirectoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write entries, and all that they refer to, into one signed file.

    Exit code 1 if an entry could not be exported, or lacks one that it refers to.
    """
    if sum((used_by_last_run, bool(key), since is not None, everything)) > 1:
        fail("give one of --used-by-last-run, --key, --since and --all", code=2)
    cache = open_directory(directory)
    _need_own_key()
    with problems_reported(cache.local):
        chosen = _chosen(cache, used_by_last_run, key or (), since)
        if not chosen:
            fail(f"there is nothing to export in {cache.path}")
        with progress("exporting", len(chosen)) as advance:
            exported = export(cache, chosen, str(file), advance)
    if as_json:
        left_out = [one._asdict() for one in exported.left_out]
        print_json({"file": str(file), **exported._asdict(), "left_out": left_out})
    else:
        _print_exported(exported, file)
    if exported.left_out or exported.missing:
        raise typer.Exit(1)


def import_command(
    file: FileArgument, directory: DirectoryOption = None, as_json: JsonOption = False
) -> None:
    """Take the entries of a bundle into the cache, if a trusted key signed them.

    Exit code 1 if the bundle cannot be read, or an entry was refused.
    """
    settings = read_settings(directory)
    into = open_placement(directory).open(settings.max_size)
    url = RemoteURL.of(f"bundle:{quote(os.path.abspath(file))}")
    bundle = RemoteStore(BundleFiles(url), Trust.on_servers(settings.trust))
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
        raise typer.Exit(1)


def _need_own_key() -> None:
    try:
        own = own_public_key()
    except (UnusableKey, NoDirectoryError, OSError) as error:
        fail(str(error))
    if own is None:
        fail("there is no key to sign with; `cachegraph key` makes one")


def _chosen(
    cache: CacheDirectory, used_by_last_run: bool, prefixes: Sequence[str], since: float | None
) -> Collection[bytes]:
    if prefixes:
        return {_only(cache, prefix.lower()) for prefix in prefixes}
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
    if not prefix or set(prefix) - set("0123456789abcdef"):
        raise typer.BadParameter(f"{prefix!r} is not a key: keys are hexadecimal", param_hint="--key")
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
