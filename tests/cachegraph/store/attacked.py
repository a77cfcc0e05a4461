"""Stores with signed entries as their attackers see them: files under names, which they read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from cachegraph.remote_url import RemoteURL
from cachegraph.store.paths import ENTRIES, REVOCATIONS, STORE_VERSION
from cachegraph.store.protocol import Store
from cachegraph.store.remote.bundle_files import BundleFiles
from cachegraph.store.remote.bundle_format import BundleWriter
from cachegraph.store.remote.files import RemoteFiles
from cachegraph.store.remote.opening import open_files
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.trust import Trust
from tests.cachegraph.store.remote.servers import SERVERS, nginx

MOST = 10**7


class Storage(Protocol):
    """The files of a store, and the store on them: for its publishers, and for its readers."""

    def read(self, place: str) -> bytes: ...

    def write(self, place: str, content: bytes) -> None: ...

    def published(self, trust: str) -> Store: ...

    def opened(self, trust: str) -> Store: ...


class Directory:
    """A shared directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self, place: str) -> bytes:
        return (self.directory / place).read_bytes()

    def write(self, place: str, content: bytes) -> None:
        path = self.directory / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def published(self, trust: str) -> Store:
        return SharedStore(self.directory, trust=Trust.of(trust))

    def opened(self, trust: str) -> Store:
        return self.published(trust)


class Web(Directory):
    """A directory that nginx publishes at `url`."""

    def __init__(self, directory: Path, url: str) -> None:
        super().__init__(directory)
        self._url = url

    def opened(self, trust: str) -> Store:
        return RemoteStore(open_files(RemoteURL.of(self._url)), Trust.on_servers(trust))


class Bundle(Directory):
    """A bundle of the files in a directory, made by the attacker."""

    def opened(self, trust: str) -> Store:
        path = self.directory.with_name("attacked.bundle")
        with BundleWriter(str(path)) as writer:
            for entry in self._files(ENTRIES):
                writer.add_entry(entry.name, entry.read_bytes())
            for blob in self._files(f"{STORE_VERSION}/b"):
                writer._add(writer._blobs, bytes.fromhex(blob.name), blob.read_bytes())
            for revocations in self._files(REVOCATIONS):
                writer.add_revocations(bytes.fromhex(revocations.name), revocations.read_bytes())
        return RemoteStore(BundleFiles(RemoteURL.of(f"bundle:{path}")), Trust.on_servers(trust))

    def _files(self, below: str) -> list[Path]:
        return sorted(path for path in (self.directory / below).rglob("*") if path.is_file())


class OnServer:
    """The files of a server that is written to."""

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files

    def read(self, place: str) -> bytes:
        return self._files.read(place, MOST)

    def write(self, place: str, content: bytes) -> None:
        self._files.write(place, content)

    def published(self, trust: str) -> Store:
        return RemoteStore(self._files, Trust.on_servers(trust))

    def opened(self, trust: str) -> Store:
        return self.published(trust)

    def empty(self) -> None:
        for file in list(self._files.listed("")):
            self._files.remove(file.name)


KINDS = ("directory", "bundle", "http", *sorted(SERVERS))

Make = Callable[[Path], Storage]
"""Makes an empty storage; its files on this machine, if any, are in the directory."""


@contextmanager
def running_storage(kind: str, directory: Path, patch: Callable[[str, str], None]) -> Iterator[Make]:
    """Run what a kind needs, and yield what makes storages of it; `patch` sets environment variables."""
    if kind in ("directory", "bundle"):
        yield Directory if kind == "directory" else Bundle
    elif kind == "http":
        public = directory / "public"
        public.mkdir()
        with nginx(public) as web:
            yield lambda own: Web(public / own.parent.name, f"{web.url}/{own.parent.name}")
    else:
        with SERVERS[kind]() as server:
            for name, value in server.variables.items():
                patch(name, value)
            files = open_files(RemoteURL.of(server.url))
            yield lambda _: OnServer(files)
            files.close()
