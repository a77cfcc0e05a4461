"""Revoking: writing the next revocation list of this user to directories and servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cachegraph.fingerprint.primitives import content_name
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.entry import LARGEST_ENTRY, Miss
from cachegraph.store.files import publish_file, read_network_file
from cachegraph.store.paths import entry_place, revocation_place
from cachegraph.store.remote.files import RemoteFiles
from cachegraph.store.revocation.kept import keep, usable_lists
from cachegraph.store.revocation.list_file import (
    LARGEST_LIST,
    RevocationFault,
    RevocationList,
    Revoked,
    read_list,
    write_list,
)
from cachegraph.store.shared.entry_file import split_file
from cachegraph.store.signing import sign
from cachegraph.store.trust import Guard, Trust


class Publisher(NamedTuple):
    """A directory or server at `location`: how its files are read (place, most bytes) and written."""

    location: str
    read: Callable[[str, int], bytes]
    write: Callable[[str, bytes], None]

    @classmethod
    def of_directory(cls, directory: Path, trust: Trust) -> Publisher:
        """Return the shared directory. Accesses nothing."""
        guard = Guard(directory, trust)
        return cls(
            str(directory),
            lambda place, most: read_network_file(directory / place, guard, most),
            lambda place, content: publish_file(directory / place, content, guard),
        )

    @classmethod
    def of_server(cls, files: RemoteFiles) -> Publisher:
        """Return the server. Asks nothing."""
        return cls(files.location, files.read, files.write)


def revoke(publishers: Sequence[Publisher], revoked: Revoked) -> RevocationList:
    """Write a list that holds `revoked` and all earlier ones to each of `publishers`, and return it.

    A configuration directory that cannot be written, such as a mounted secret, does not keep it. Raises
    FileNotFoundError without a key, OSError and ValueError; the list may then be in some of them.
    """
    signer = sign(b"").signer
    earlier = [*usable_lists((signer,)).values(), *_published(publishers, signer)]
    number = 1 + max((one.number for one in earlier), default=0)
    content = write_list(number, Revoked.union((revoked, *(one.revoked for one in earlier))))
    written = read_list(content, signer)
    with suppress(OSError):
        keep(content, written)
    place = revocation_place(signer)
    for publisher in publishers:
        publisher.write(place, content)
        if publisher.read(place, LARGEST_LIST) != content:
            raise OSError(f"revoking in {publisher.location}: another process writes there; try again")
    return written


def record_names(publishers: Iterable[Publisher], key_hex: str) -> set[str]:
    """Return the names of the records that `publishers` have under a key. Raises OSError and ValueError."""
    found = set()
    for publisher in publishers:
        try:
            pieces = split_file(publisher.read(entry_place(key_hex), LARGEST_ENTRY))
        except FileNotFoundError:
            continue
        if isinstance(pieces, Miss):
            raise ValueError(f"reading {key_hex} in {publisher.location}: {pieces.detail}")
        found.add(content_name(pieces.record))
    return found


def _published(publishers: Iterable[Publisher], signer: bytes) -> Iterator[RevocationList]:
    """Yield the lists that are there; one that somebody else wrote is replaced."""
    for publisher in publishers:
        try:
            yield read_list(publisher.read(revocation_place(signer), LARGEST_LIST), signer)
        except (FileNotFoundError, RevocationFault):
            continue
