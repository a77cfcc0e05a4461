"""The store of a cache that there is not: in the mode off, or where there is no place for one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cachegraph.key import CacheKey
from cachegraph.store.claims.claims import Claim
from cachegraph.store.entry import Artifact, Entry, Hit, Miss
from cachegraph.store.local.activity import Batch


class NoStore:
    """It holds nothing and keeps nothing; `why` is what each look-up says."""

    def __init__(self, why: Miss) -> None:
        self.why = why

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return why there is no cache."""
        return self.why

    def put(self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> None:
        """Raise OSError: there is no place."""
        raise OSError(f"storing {key.hex}: {self.why.detail}")

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return None."""
        return None

    def scan(self) -> list[Entry]:
        """Return nothing."""
        return []

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Return 0."""
        return 0

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return nothing to acquire."""
        return ()

    def recorded_cost(self, key: CacheKey) -> float | None:
        """Return None."""
        return None

    def add_counts(self, batch: Batch) -> bool:
        """Return False: counts are lost."""
        return False

    def set_aside(self, key: CacheKey, payload: bytes) -> Path | None:
        """Return None."""
        return None

    def close(self) -> None:
        """Do nothing."""
