"""`cachegraph why-miss [KEY]`: the reason of a miss, by comparison with the nearest stored key."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from cachegraph.cli.list import SHOWN_DIGITS
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
from cachegraph.explanation import Explanation, explain_kept
from cachegraph.store.local.catalogue import KeptMiss
from cachegraph.store.local.store import LocalStore
from cachegraph.units import format_age, format_count

_MOST_LISTED = 20
_COLUMNS = {"key": "left", "level": "left", "missed": "right", "reason": "left", "what differs": "fill"}


@command("why-miss")
@click.argument("prefix", metavar="[KEY]", type=key_prefix, required=False)
@directory_option
@json_option
def why_miss_command(prefix: str | None, directory: Path | None, as_json: bool) -> None:
    """Explain a miss by the nearest stored key; without KEY, the latest misses, functions first.

    KEY is the key, or its first digits.
    """
    store = open_directory(directory).local
    with problems_reported(store):
        if prefix:
            _explain_one(store, prefix, as_json)
        else:
            _explain_latest(store, as_json)


def _explain_one(store: LocalStore, prefix: str, as_json: bool) -> None:
    found = store.catalogue.find_misses(prefix)
    if len(found) != 1:
        wanted = "give more digits" if found else "a process writes its misses when it ends"
        keys = "no key" if not found else format_count(len(found), "key")
        fail(f"{keys} of a miss in {store.layout.directory} starts with {prefix}; {wanted}")
    explanation = explain_kept(store, found[0])
    if as_json:
        print_json(_document(found[0], explanation))
    else:
        for line in explanation.lines():
            print_line(line)


def _explain_latest(store: LocalStore, as_json: bool) -> None:
    misses = store.catalogue.misses(_MOST_LISTED)
    explained = [(kept, explain_kept(store, kept)) for kept in misses]
    if as_json:
        print_json([_document(kept, explanation) for kept, explanation in explained])
    elif explained:
        print_table(_COLUMNS, (_cells(kept, explanation) for kept, explanation in explained))
    else:
        print_line(f"no misses in {store.layout.directory}")


def _document(kept: KeptMiss, explanation: Explanation) -> dict[str, Any]:
    differences = [difference._asdict() for difference in explanation.differences]
    return {**explanation._asdict(), "missed": kept.missed, "differences": differences}


def _cells(kept: KeptMiss, explanation: Explanation) -> tuple[str, ...]:
    what = "; ".join(f"{part}: {what}" for part, what in explanation.differences)
    age = format_age(time.time() - kept.missed)
    return kept.digest.hex()[:SHOWN_DIGITS], kept.level, age, kept.reason, what
