"""Opening the files of a URL. The libraries of a server are imported with the first use of its files."""

from __future__ import annotations

from cachegraph.remote_url import RemoteURL
from cachegraph.store.remote.files import RemoteFiles


def open_files(url: RemoteURL) -> RemoteFiles:
    """Return the files that `url` names. Asks no server."""
    if url.scheme in ("http", "https"):
        from cachegraph.store.remote.web_files import WebFiles

        return WebFiles(url)
    if url.scheme == "bundle":
        from cachegraph.store.remote.bundle_files import BundleFiles

        return BundleFiles(url)
    if url.scheme == "s3":
        from cachegraph.store.remote.s3_files import S3Files

        return S3Files(url)
    if url.scheme == "postgresql":
        from cachegraph.store.remote.postgresql_files import PostgreSQLFiles

        return PostgreSQLFiles(url, None if url.content is None else open_files(url.content))
    from cachegraph.store.remote.redis_files import RedisFiles

    return RedisFiles(url)
