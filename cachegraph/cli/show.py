"""`cachegraph show KEY`: everything that the store knows about one entry."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from cachegraph.cli.list import describe
from cachegraph.cli.options import (
    command,
    directory_option,
    fail,
    json_option,
    key_prefix,
    open_directory,
    problems_reported,
)
from cachegraph.cli.output import print_json, print_line, print_table
from cachegraph.errors import InvalidEncoding
from cachegraph.key import CacheKey
from cachegraph.store.entry import BlobReference, Entry, Miss, Origin
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.whole_entries import stored_key
from cachegraph.store.shared.without_index import StoredFile
from cachegraph.store.signing import public_key_text
from cachegraph.units import format_ago, format_count, format_seconds, format_size

_MOST_LISTED = 5


@command("show")
@click.argument("prefix", metavar="KEY", type=key_prefix)
@directory_option
@json_option
def show_command(prefix: str, directory: Path | None, as_json: bool) -> None:
    """Show one entry: the parts of its key, its build cost, its blobs and its uses.

    KEY is the key, or its first digits.
    """
    cache = open_directory(directory)
    with problems_reported(cache.local):
        found = cache.described(_only(cache.keys(prefix, _MOST_LISTED + 1), prefix, cache))
    if isinstance(found, Miss):
        fail(f"the entry of {prefix} in {cache.path} cannot be shown: {found.reason}: {found.detail}")
    parsed = _stored_key(found)
    others = [other.hex() for other in found.references]
    origin = _origin(found.origin)
    if as_json:
        print_json({**_document(found.entry, found.blobs, parsed), "references": others, **origin})
    else:
        _print(found.entry, found.blobs, parsed, origin)
        _print_others(others)


def _only(found: Sequence[bytes], prefix: str, cache: CacheDirectory) -> bytes:
    if not found:
        fail(f"no key in {cache.path} starts with {prefix}")
    if len(found) > 1:
        some = ", ".join(digest.hex() for digest in found[:_MOST_LISTED])
        more = ", ..." if len(found) > _MOST_LISTED else ""
        fail(f"several keys start with {prefix} ({some}{more}); give more digits")
    return found[0]


def _stored_key(found: StoredFile) -> CacheKey:
    try:
        return stored_key(found)
    except InvalidEncoding as error:
        fail(f"the encoding of key {found.entry.hex} is damaged: {error}")


def _document(entry: Entry, references: Sequence[BlobReference], key: CacheKey) -> dict[str, object]:
    digests = key.part_digests
    parts = [{"name": name, "bytes": len(part), "digest": digests[name].hex()} for name, part in key.parts]
    blobs = [
        {"name": reference.name, "bytes": reference.size, "digest": reference.digest}
        for reference in references
    ]
    return {**describe(entry), "parts": parts, "blobs": blobs}


def _origin(origin: Origin | None) -> dict[str, str]:
    """Return who signed and who wrote a copy of a shared entry; nothing for what was built here."""
    if origin is None:
        return {}
    return {"signer": public_key_text(origin.signer), "writer": origin.writer}


def _print(entry: Entry, references: Sequence[BlobReference], key: CacheKey, origin: dict[str, str]) -> None:
    now = time.time()
    facts = {
        "key": entry.hex,
        "level": entry.level,
        "what": entry.summary,
        "size": format_size(entry.size),
        "created": f"{format_ago(now - entry.created)} by cachegraph {entry.version}",
        "used": _used(entry, now),
        "load": format_seconds(entry.load_seconds),
        **origin,
    }
    for name, value in facts.items():
        print_line(f"{name:8} {value}")
    print_line()
    costs = [*entry.seconds.items(), ("total", entry.build_seconds)]
    print_table({"build": "left", "time": "right"}, ((step, format_seconds(cost)) for step, cost in costs))
    print_line()
    digests = key.part_digests
    print_table(
        {"part": "left", "size": "right", "digest": "left"},
        ((name, format_size(len(part)), digests[name].hex()) for name, part in key.parts),
    )
    if references:
        print_line()
        print_table(
            {"blob": "left", "size": "right", "digest": "left"},
            ((one.name or "(payload)", format_size(one.size), one.digest) for one in references),
        )


def _used(entry: Entry, now: float) -> str:
    if not entry.uses:
        return "never since it was made"
    return f"{format_count(entry.uses, 'time')}, last {format_ago(now - entry.last_used)}"


def _print_others(others: Sequence[str]) -> None:
    if others:
        print_line()
        print_table({"refers to": "left"}, ((other,) for other in others))
