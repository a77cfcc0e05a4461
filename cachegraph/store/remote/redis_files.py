"""Files in Redis or Valkey: a string each, under "cachegraph:" and the name of the file.

With a time to live, each file vanishes that long after it was written; a blob that is written again
lives on. An entry whose blob has vanished is a miss. Revocation lists stay.

The names of the leases of a key are in a set, under "cachegraph-leases:" and the place of the lease: Redis
finds names by their beginning only by a walk over all, and each node that waits asks for them every second.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cachegraph.remote_url import RemoteURL
from cachegraph.store.files import Oversized
from cachegraph.store.paths import LEASES, REVOCATIONS
from cachegraph.store.remote.files import RemoteError, RemoteFile, WriteRefused
from cachegraph.store.remote.per_process import PerProcess

_PREFIX = "cachegraph:"
_LEASES_PREFIX = "cachegraph-leases:"
_AT_ONCE = 500
_WILD = str.maketrans({character: f"\\{character}" for character in "*?[]\\"})


class RedisFiles:
    """The files in the database of a URL."""

    def __init__(self, url: RemoteURL) -> None:
        self.location = url.location
        self.may_write = url.may_write
        self._url = url
        self._seconds = int(url.ttl) or None
        self._client = PerProcess(self._connect)

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file. Raises FileNotFoundError, and Oversized above `most` bytes."""
        content, length, exists = self._found(name, most, at_once=False)
        if exists and not content:  # an empty file, or one that came or went meanwhile
            content, length, exists = self._found(name, most, at_once=True)
        if not exists:
            raise FileNotFoundError(errno.ENOENT, "no such key", f"{self.location} {name}")
        if len(content) > most:
            raise Oversized(f"{self.location} {name}", length, most)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file in one step."""
        with self._errors():
            seconds = None if name.startswith(REVOCATIONS) else self._seconds
            asked = self._client.get().pipeline(transaction=True)
            self._note_lease(asked.set(_PREFIX + name, content, ex=seconds), name).execute()

    def create(self, name: str, content: bytes) -> bool:
        """Create a file in one step; return False if there is one, which begins to live anew."""
        with self._errors():
            client = self._client.get()
            asked = client.pipeline(transaction=True)
            asked.set(_PREFIX + name, content, ex=self._seconds, nx=True)
            created = self._note_lease(asked, name).execute()[0]
            if not created and self._seconds:
                client.expire(_PREFIX + name, self._seconds)
            return bool(created)

    def remove(self, name: str) -> bool:
        """Remove a file; return False if there was none."""
        with self._errors():
            asked = self._client.get().pipeline(transaction=True).delete(_PREFIX + name)
            place = _lease_of(name)
            if place:
                asked.srem(_LEASES_PREFIX + place, name)
            return bool(asked.execute()[0])

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """Yield every file whose name starts with `prefix`. Redis does not keep when one was written."""
        with self._errors():
            client, now = self._client.get(), time.time()
            if _lease_of(prefix):
                yield from self._leases(prefix, now)
                return
            for key in client.scan_iter(f"{_PREFIX}{prefix.translate(_WILD)}*", count=_AT_ONCE):
                yield RemoteFile(key.decode().removeprefix(_PREFIX), client.strlen(key), now)

    def wait(self, name: str, seconds: float) -> None:
        """Sleep: the server is asked for no messages."""
        time.sleep(seconds)

    def close(self) -> None:
        """Close the connections of this process."""
        client = self._client.forget()
        if client is not None:
            client.close()

    def _found(self, name: str, most: int, at_once: bool) -> tuple[bytes, int, bool]:
        """Return the first `most` + 1 bytes of a file, its length, and whether there is one.

        Asked `at_once`, all three are of one moment, which a Redis that is full refuses.
        """
        with self._errors():
            asked = self._client.get().pipeline(transaction=at_once)
            asked.getrange(_PREFIX + name, 0, most).strlen(_PREFIX + name).exists(_PREFIX + name)
            content, length, exists = asked.execute()
        return bytes(content), int(length), bool(exists) or bool(content)

    def _note_lease(self, asked: Any, name: str) -> Any:
        """Add to the requests `asked` those that put a lease into the set of its key; return `asked`."""
        place = _lease_of(name)
        if place:
            asked.sadd(_LEASES_PREFIX + place, name)
            if self._seconds:
                asked.expire(_LEASES_PREFIX + place, self._seconds)
        return asked

    def _leases(self, prefix: str, now: float) -> Iterator[RemoteFile]:
        client = self._client.get()
        names = [name.decode() for name in client.smembers(_LEASES_PREFIX + _lease_of(prefix))]
        asked = client.pipeline(transaction=False)
        for name in names:
            asked.exists(_PREFIX + name).strlen(_PREFIX + name)
        found = iter(asked.execute())
        for name, exists, size in zip(names, found, found, strict=False):
            if exists and name.startswith(prefix):
                yield RemoteFile(name, size, now)

    def _connect(self) -> Any:
        from cachegraph.store.remote.redis_client import connected_client  # imports redis

        return connected_client(self._url)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the library's errors as RemoteErrors."""
        import redis

        try:
            yield
        except redis.ResponseError as error:  # of all that is asked, it refuses only what writes
            raise WriteRefused(self.location, f"{type(error).__name__}: {error}") from error
        except redis.RedisError as error:
            raise RemoteError(self.location, f"{type(error).__name__}: {error}") from error


def _lease_of(name: str) -> str:
    """Return the place of the lease that a name, or the beginning of one, belongs to; empty if none."""
    place, dot, _ = name.rpartition(".")
    return place if dot and name.startswith(f"{LEASES}/") else ""
