"""The cache of a site without a shared directory: PostgreSQL for entries, a bucket for large content, on
loopback.

`unavailable` says what is missing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from cachegraph.remote_url import RemoteURL
from cachegraph.store.paths import LEASES
from cachegraph.store.remote.opening import open_files
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.signing import make_own_key
from cachegraph.store.trust import Trust
from tests.cachegraph.store.remote.servers import missing, postgresql, s3


def unavailable() -> str:
    """Return which server is not installed, empty if none is missing."""
    return missing("postgresql") or missing("s3")


class SiteServers:
    """Two running servers; `variables` are what a job sets to use them."""

    def __init__(self, url: str, variables: Mapping[str, str]) -> None:
        self.url = url
        self.variables = {**variables, "CACHEGRAPH_REMOTE": url}

    def entries(self) -> Counter[str]:
        """Return how many entries each level has."""
        files = open_files(RemoteURL.of(self.url))
        stored = RemoteStore(files, Trust.on_servers("private")).stored()
        levels = Counter(file.entry.level for file in stored)
        files.close()
        return levels

    def leases(self) -> list[str]:
        """Return the names of the leases that nobody removed."""
        files = open_files(RemoteURL.of(self.url))
        names = [file.name for file in files.listed(f"{LEASES}/")]
        files.close()
        return names


@contextmanager
def serving(directory: Path) -> Iterator[SiteServers]:
    """Run the servers until the context ends; the key that signs the entries is made in `directory`."""
    with postgresql() as database, s3() as bucket:
        variables = {**bucket.variables, "XDG_CONFIG_HOME": str(directory / "config")}
        with patch.dict(os.environ, variables):
            make_own_key()
            yield SiteServers(f"{database.url}?content={bucket.url}", variables)
