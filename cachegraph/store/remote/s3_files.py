"""Files in a bucket of S3, or of a server that speaks its protocol, by boto3.

The name of an object is the prefix of the URL, a slash, and the name of the file. `create` is a
conditional put (If-None-Match: *).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import closing, contextmanager
from time import sleep
from typing import Any
from urllib.parse import unquote, urlsplit

from cachegraph.remote_url import RemoteURL
from cachegraph.store.files import Oversized
from cachegraph.store.remote.files import RemoteError, RemoteFile, WriteRefused
from cachegraph.store.remote.per_process import PerProcess

_MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
_CHUNK = 1 << 18
_REFUSALS = frozenset({403, 405, 413, 507})
"""Forbidden, no such method, too large, no space: statuses of an answer."""
_EXISTS = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})


class S3Files:
    """The files below `s3://BUCKET/PREFIX`."""

    def __init__(self, url: RemoteURL) -> None:
        split = urlsplit(url.url)
        self.location = url.location
        self.may_write = url.may_write
        self._bucket = split.netloc
        self._prefix = unquote(split.path).strip("/")
        self._timeout = url.timeout
        self._client = PerProcess(self._connect)

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file. Raises FileNotFoundError, and Oversized above `most` bytes."""
        with self._errors(name):
            found = self._client.get().get_object(Bucket=self._bucket, Key=self._key(name))
            with closing(found["Body"]) as body:
                return b"".join(self._pieces(body, name, most))

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file in one step."""
        with self._errors(name):
            self._client.get().put_object(Bucket=self._bucket, Key=self._key(name), Body=content)

    def create(self, name: str, content: bytes) -> bool:
        """Create a file in one step; return False if there is one."""
        try:
            with self._errors(name):
                self._client.get().put_object(
                    Bucket=self._bucket, Key=self._key(name), Body=content, IfNoneMatch="*"
                )
        except FileExistsError:
            return False
        return True

    def remove(self, name: str) -> bool:
        """Remove a file; return False if there was none, which S3 says only when asked before."""
        given = {"Bucket": self._bucket, "Key": self._key(name)}
        try:
            with self._errors(name):
                self._client.get().head_object(**given)
                self._client.get().delete_object(**given)
        except FileNotFoundError:
            return False
        return True

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """Yield every file whose name starts with `prefix`."""
        cut = len(self._key(""))
        with self._errors(prefix):
            pages = self._client.get().get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._key(prefix)):
                for found in page.get("Contents", ()):
                    yield RemoteFile(found["Key"][cut:], found["Size"], found["LastModified"].timestamp())

    def wait(self, name: str, seconds: float) -> None:
        """Sleep: S3 tells nobody what changes."""
        sleep(seconds)

    def close(self) -> None:
        """Close the connections of this process."""
        client = self._client.forget()
        if client is not None:
            client.close()

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _connect(self) -> Any:
        from cachegraph.store.remote.s3_client import bounded_client  # imports boto3

        return bounded_client(self._timeout)

    def _pieces(self, body: Any, name: str, most: int) -> Iterator[bytes]:
        size = 0
        for piece in body.iter_chunks(_CHUNK):
            size += len(piece)
            if size > most:
                raise Oversized(f"{self.location}/{name}", size, most)
            yield piece

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Raise the library's errors as OSErrors: FileNotFoundError, FileExistsError, RemoteError."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in _MISSING:
                raise FileNotFoundError(errno.ENOENT, "no such object", f"{self.location}/{name}") from None
            if code in _EXISTS:
                raise FileExistsError(errno.EEXIST, "it exists", f"{self.location}/{name}") from None
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            raise (WriteRefused if status in _REFUSALS else RemoteError)(self.location, str(error)) from error
        except BotoCoreError as error:
            raise RemoteError(self.location, str(error)) from error
