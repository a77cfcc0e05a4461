"""The examination of the directories of a cache: facts, problems, and advice on each problem."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cachegraph.errors import NoDirectoryError
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.failures import is_damage
from cachegraph.store.files import read_file
from cachegraph.store.local.store import LocalStore
from cachegraph.store.paths import TEMPORARY_PREFIX, unique_name
from cachegraph.store.shared.store import SharedStore, entry_files
from cachegraph.store.signing import own_public_key, public_key_text
from cachegraph.store.tiers import Tier
from cachegraph.store.trust import Guard, Trust, Untrusted
from cachegraph.units import format_count

LARGEST_SKEW = 5.0  # seconds
LEAST_FREE = 1 << 30  # bytes
LEAST_INODES = 10_000
_LEFT_OVER = 3600.0  # seconds; no writer takes as long


class Finding(NamedTuple):
    """One fact, and `advice` on what to do about it, empty if nothing need be done."""

    what: str
    found: str
    advice: str = ""


def examine(tier: Tier) -> list[Finding]:
    """Return the facts about the directory of one tier; writes a probe file there and removes it.

    Never raises: a failed check is a finding. Does not create the directory.
    """
    kind = "local" if tier.file_system.local else "not known to be local"
    findings = [Finding("file system", f"{tier.file_system.name}, {kind}")]
    try:
        status = os.stat(tier.directory)
    except FileNotFoundError:
        return [*findings, Finding("directory", "not made yet")]
    except OSError as error:
        return [*findings, Finding("directory", str(error), "make it readable, or set another directory")]
    findings += [_owner(status), _mode(status, tier.trust), _trust(tier), *own_key(tier.trust), _clock(tier)]
    with suppress(OSError):
        findings += _free_space(os.statvfs(tier.directory))
    return [*findings, *_index(tier.directory), _temporary_files(tier.directory)]


def _index(directory: Path) -> list[Finding]:
    """Return whether the index of the directory can be read, if it has one."""
    store = LocalStore(directory)
    if not os.path.lexists(store.layout.index):
        return []
    try:
        row = store.database.select_one("SELECT count(*) FROM entry", ())
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        repair = "cachegraph verify repairs it" if is_damage(error) else "make it readable, or move it away"
        return [Finding("index", str(error), f"nothing is found here: {repair}")]
    finally:
        store.close()
    return [Finding("index", format_count(row[0] if row else 0, "entry", "entries"))]


def _owner(status: os.stat_result) -> Finding:
    return Finding("owner", f"uid {status.st_uid}, this process is {os.geteuid()}")


def _mode(status: os.stat_result, trust: Trust) -> Finding:
    mode = stat.S_IMODE(status.st_mode)
    others = (("its group", stat.S_IWGRP), ("everybody", stat.S_IWOTH))
    open_to = [who for who, bit in others if mode & bit & ~trust.directory_mode]
    advice = (
        f"it can be written by {' and '.join(open_to)}: chmod {trust.directory_mode:o} it" if open_to else ""
    )
    return Finding("mode", f"{mode:04o}", advice)


def _trust(tier: Tier) -> Finding:
    """Check the files as a read would; show the first one that is refused."""
    refused = [str(error) for error in _refusals(tier)]
    if not refused:
        return Finding("trust", str(tier.trust))
    return Finding("trust", f"{tier.trust}; {len(refused)} refused", f"{refused[0]}")


def own_key(trust: Trust) -> list[Finding]:
    """Return whether others trust the signatures of this user, if the policy uses signatures."""
    if trust.signers is None:
        return []
    try:
        own = own_public_key()
    except (OSError, NoDirectoryError) as error:
        return [Finding("key", str(error), "nothing is kept here without a key: cachegraph key new")]
    if own is None:
        return [Finding("key", "none: this user only reads here; `cachegraph key new` makes one")]
    advice = "" if own in trust.signers else "it is not listed in CACHEGRAPH_TRUST, so nothing is kept here"
    return [Finding("key", public_key_text(own), advice)]


def _refusals(tier: Tier) -> Iterator[Untrusted]:
    """Yield the reasons why files or directories are refused, each refused directory once."""
    yield from _refused_files(tier)
    if tier.trust.signers is None:
        return
    store = SharedStore(tier.directory, trust=tier.trust)
    for name, path in entry_files(store.layout):
        try:
            store.read_entry(name, path)
        except Untrusted as error:
            yield error
        except (OSError, MemoryError):
            continue


def _refused_files(tier: Tier) -> Iterator[Untrusted]:
    guard = Guard(tier.directory, tier.trust)
    for place, _, names in os.walk(tier.directory):
        try:
            guard.check_directory(Path(place))
        except Untrusted as error:
            yield error
            continue
        except OSError:  # gone meanwhile
            continue
        for name in names:
            try:
                guard.check_link(Path(place, name))
            except Untrusted as error:
                yield error
            except OSError:
                continue


def _clock(tier: Tier) -> Finding:
    """Write a file, read it back, and compare its time on the file system with the clock of this machine."""
    if not tier.trust.may_write:
        return Finding("writing", "left to those who may: this user only reads here")
    probe = tier.directory / unique_name(TEMPORARY_PREFIX)
    before = time.time()
    try:
        with open(probe, "xb") as file:
            file.write(b"probe")
        written = os.stat(probe).st_mtime
        same = read_file(probe, None, len(b"probe")) == b"probe"
        os.unlink(probe)
    except OSError as error:
        return Finding(
            "writing", str(error), "nothing new is kept here; free space, or set another directory"
        )
    if not same:
        return Finding("writing", "reads back as something else", "use another file system")
    skew = written - before
    advice = "set the clocks: ages are judged by them" if abs(skew) > LARGEST_SKEW else ""
    return Finding("clock", f"{skew:+.2f} s from this machine's", advice)


def _free_space(disk: os.statvfs_result) -> list[Finding]:
    free = disk.f_bavail * disk.f_frsize
    advice = "cachegraph prune, or more room" if free < LEAST_FREE else ""
    space = Finding("free space", f"{free / 1e9:.1f} GB", advice)
    if not disk.f_files:  # a file system that creates inodes on demand
        return [space]
    few = disk.f_favail < LEAST_INODES
    return [space, Finding("free inodes", str(disk.f_favail), "remove files" if few else "")]


def _temporary_files(directory: Path) -> Finding:
    now = time.time()
    ages = [now - changed for changed in _changes(directory)]
    old = sum(age > _LEFT_OVER for age in ages)
    advice = f"{old} of them were left by killed processes: cachegraph prune removes them" if old else ""
    return Finding("temporary files", str(len(ages)), advice)


def _changes(directory: Path) -> list[float]:
    found = []
    for place, _, names in os.walk(directory):
        for name in names:
            if name.startswith(TEMPORARY_PREFIX):
                with suppress(OSError):
                    found.append(os.lstat(os.path.join(place, name)).st_mtime)
    return found
