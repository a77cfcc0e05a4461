"""The number and size of the files on a server, from their listing alone: no file is read."""

from __future__ import annotations

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.paths import ENTRIES, STORE_VERSION
from cachegraph.store.remote.files import RemoteFiles


class RemoteContents(NamedTuple):
    """The entries and blobs of a server, and the bytes of all its files."""

    entries: int
    blobs: int
    bytes: int


def remote_contents(files: RemoteFiles) -> RemoteContents:
    """Return the contents of `files`. Raises RemoteError."""
    entries = blobs = size = 0
    for file in files.listed(f"{STORE_VERSION}/"):
        entries += file.name.startswith(f"{ENTRIES}/")
        blobs += file.name.startswith(f"{STORE_VERSION}/b/")
        size += file.size
    return RemoteContents(entries, blobs, size)
