"""The URLs of CACHEGRAPH_REMOTE.

    s3://BUCKET/PREFIX                  a bucket; credentials, region and endpoint as for boto3 (AWS_*)
    redis://HOST:PORT/DB, rediss://     Redis or Valkey; with ?ttl=7d, files vanish then
    postgresql://USER@HOST/DATABASE     PostgreSQL; with ?content=s3://BUCKET/PREFIX, files above 64 KiB
                                        are in that bucket
    https://HOST/PATH, http://          files of a web server, read only
    bundle:/PATH                        a bundle (`cachegraph export`), read only; spaces are %20

Every URL takes ?write=no (read only) and ?timeout=SECONDS, the longest wait for one answer (default 5).
All other options belong to the server's own URL; those of Redis and PostgreSQL have some.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from cachegraph.named_tuples import NamedTuple
from cachegraph.units import parse_duration

READ_ONLY = frozenset({"http", "https", "bundle"})
SCHEMES = ("s3", "redis", "rediss", "postgresql", "https", "http", "bundle")
TIMEOUT = 5.0
_WITHOUT_OPTIONS = READ_ONLY | {"s3"}
_YES_NO = {"yes": True, "no": False}


class RemoteURL(NamedTuple):
    """A parsed URL: `url` is what is left for the server; `ttl` seconds (0: no limit).

    `content` is the bucket for the large files of a database, or None.
    """

    scheme: str
    url: str
    may_write: bool
    timeout: float
    ttl: float
    content: RemoteURL | None = None

    @classmethod
    def of(cls, text: str) -> RemoteURL:
        """Return the parsed `text`. Raises ValueError, without naming passwords, for anything else."""
        split = urlsplit(text)
        if split.scheme not in SCHEMES:
            raise ValueError(f"the scheme is {split.scheme!r}; it must be one of {', '.join(SCHEMES)}")
        if split.scheme == "bundle":
            if split.netloc or not split.path.startswith("/"):
                raise ValueError("bundle needs an absolute path: bundle:/PATH")
        elif not split.hostname:
            raise ValueError(f"{split.scheme} needs a host")
        elif split.username is not None and split.scheme in _WITHOUT_OPTIONS:
            raise ValueError(f"{split.scheme} takes no user and no password")
        split.port  # noqa: B018 (raises ValueError for a port that is none)
        options = dict(parse_qsl(split.query, keep_blank_values=True))
        may_write = _YES_NO.get(options.pop("write", "yes"))
        if may_write is None:
            raise ValueError("write is neither yes nor no")
        timeout = float(options.pop("timeout", TIMEOUT))
        if not 0 < timeout <= 3600:
            raise ValueError(f"timeout is {timeout}; it must be above 0 and at most 3600 seconds")
        ttl = (
            parse_duration(options.pop("ttl"))
            if split.scheme.startswith("redis") and "ttl" in options
            else 0.0
        )
        content = options.pop("content", None) if split.scheme == "postgresql" else None
        bucket = None if content is None else cls._bucket(content)._replace(timeout=timeout)
        if options and split.scheme in _WITHOUT_OPTIONS:
            raise ValueError(f"{split.scheme} takes no option {min(options)!r}; it takes write and timeout")
        left = urlunsplit(split._replace(query=urlencode(options)))
        return cls(split.scheme, left, may_write and split.scheme not in READ_ONLY, timeout, ttl, bucket)

    @classmethod
    def _bucket(cls, text: str) -> RemoteURL:
        found = cls.of(text)
        if found.scheme != "s3":
            raise ValueError(f"content is on {found.scheme}; it must be s3://BUCKET/PREFIX")
        return found

    @property
    def location(self) -> str:
        """Return the URL without user, password and options, for people."""
        split = urlsplit(self.url)
        return urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2], query="", fragment=""))
