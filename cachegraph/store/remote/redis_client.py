"""Clients of Redis that try once, and whose every answer comes within a time."""

from __future__ import annotations

from typing import Any

from redis import Connection, Redis, SSLConnection
from redis.backoff import NoBackoff
from redis.retry import Retry

from cachegraph.remote_url import RemoteURL
from cachegraph.store.remote.bounded_socket import BoundedSocket


def connected_client(url: RemoteURL) -> Redis:
    """Return a client for `url`. It connects with its first request."""
    return Redis.from_url(
        url.url,
        connection_class=_SecureRedisConnection if url.scheme == "rediss" else _RedisConnection,
        socket_timeout=url.timeout,
        socket_connect_timeout=url.timeout,
        retry=Retry(NoBackoff(), 0),
    )


class _RedisConnection(Connection):
    def _connect(self) -> Any:
        return BoundedSocket(super()._connect())  # type: ignore[no-untyped-call]


class _SecureRedisConnection(SSLConnection):
    def _connect(self) -> Any:
        return BoundedSocket(super()._connect())  # type: ignore[no-untyped-call]
