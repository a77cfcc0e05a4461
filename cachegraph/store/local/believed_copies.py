"""Copies of signed entries that count: those of signers whom the user trusts now.

A copy was checked when it was made. Its user may have removed the signer from the trust list since.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cachegraph.store.local.database import Database
from cachegraph.store.local.index import MOST_SELECTED, select_record, select_records
from cachegraph.store.signing import public_key_text
from cachegraph.store.trust import Untrusted

_SELECT_ONE = """
    SELECT record.content, origin.signer
    FROM entry JOIN record ON record.entry_id = entry.id LEFT JOIN origin ON origin.entry_id = entry.id
    WHERE entry.digest = ?
"""
_SELECT = """
    SELECT entry.digest, record.content, origin.signer
    FROM entry JOIN record ON record.entry_id = entry.id LEFT JOIN origin ON origin.entry_id = entry.id
    WHERE entry.digest IN ({marks})
"""
_ADVICE = "it is built again, unless `cachegraph key trust` or CACHEGRAPH_TRUST lists that key"


class BelievedCopies:
    """The records in `database` that were built here, or are copies of entries that `signers` signed.

    Creating it opens nothing. Methods raise sqlite3.Error and OSError.
    """

    def __init__(self, database: Database, signers: Collection[bytes]) -> None:
        self._database = database
        self._signers = signers
        self._has_origins = False

    def record(self, digest: bytes) -> object:
        """Return the stored record of a key, unchecked, or None.

        Raises Untrusted for the copy of an entry that none of the signers signed.
        """
        if not self._knows_origins():
            return select_record(self._database.select_one, digest)
        content, signer = self._database.select_one(_SELECT_ONE, (digest,)) or (None, None)
        if not self._is_believed(signer):
            what = f"a copy of an entry signed by {public_key_text(signer)}, who is not listed"
            raise Untrusted(self._database.path, what, _ADVICE)
        return content

    def records(self, digests: Sequence[bytes]) -> dict[bytes, object]:
        """Return the stored records of those keys that have one and are believed, unchecked, by digest."""
        if not self._knows_origins():
            return select_records(self._database.select_all, digests)
        records: dict[bytes, object] = {}
        for first in range(0, len(digests), MOST_SELECTED):
            some = tuple(digests[first : first + MOST_SELECTED])
            rows = self._database.select_all(_SELECT.format(marks=", ".join("?" * len(some))), some)
            records.update((digest, content) for digest, content, signer in rows if self._is_believed(signer))
        return records

    def _is_believed(self, signer: bytes | None) -> bool:
        return signer is None or signer in self._signers

    def _knows_origins(self) -> bool:
        """Return False for an index of an older release, which knows no signers."""
        self._has_origins = self._has_origins or self._database.has_table("origin")
        return self._has_origins
