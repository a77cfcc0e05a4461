"""Clients of S3 that try once, and whose every answer comes within a time."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.config import Config

from cachegraph.store.remote.bounded_socket import BoundedSocket


def bounded_client(seconds: float) -> Any:
    """Return a client whose every answer comes within `seconds`. It connects with its first request."""
    config = Config(
        connect_timeout=seconds,
        read_timeout=seconds,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    client = boto3.session.Session().client("s3", config=config)
    # botocore has no setting for it. The pools are those of this client alone.
    client._endpoint.http_session._pool_classes_by_scheme.update({"http": _S3Pool, "https": _SecureS3Pool})
    return client


class _S3Connection(AWSHTTPConnection):  # type: ignore[misc]
    def connect(self) -> None:
        super().connect()
        self.sock: Any = BoundedSocket(self.sock)


class _SecureS3Connection(AWSHTTPSConnection):  # type: ignore[misc]
    def connect(self) -> None:
        super().connect()
        self.sock: Any = BoundedSocket(self.sock)


class _S3Pool(AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = _S3Connection


class _SecureS3Pool(AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = _SecureS3Connection
