"""Reading use logs: when each entry was last used, how often, and the hits and misses of each day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachegraph.named_tuples import NamedTuple
from cachegraph.store.activity import SECONDS_PER_DAY
from cachegraph.store.entry import Entry
from cachegraph.store.use_log.blocks import UseBlock, read_blocks

_LARGEST = 2**62

ActivityTotals = Mapping[tuple[int, str, str, str], tuple[int, float]]
"""(day since 1970, level, outcome, reason) -> events, seconds."""


class KeyUse(NamedTuple):
    """The recorded uses of a key, and the time of the last use or miss (seconds since 1970)."""

    uses: int = 0
    last_used: float = 0.0


class LoggedUse(NamedTuple):
    """The sum of use logs: uses by key digest, and totals."""

    keys: Mapping[bytes, KeyUse] = {}
    totals: ActivityTotals = {}

    def of(self, entry: Entry) -> Entry:
        """Return `entry` with the uses that were logged, if they say more than it does."""
        use = self.keys.get(entry.digest)
        if use is None:
            return entry
        last_used, uses = max(entry.last_used, use.last_used), max(entry.uses, use.uses)
        return entry._replace(last_used=last_used, uses=uses)


def sum_up(logs: Iterable[bytes], now: float) -> LoggedUse:
    """Return the sum of `logs` at `now` (seconds since 1970). A block of the future counts as written now."""
    keys: dict[bytes, KeyUse] = {}
    totals: dict[tuple[int, str, str, str], tuple[int, float]] = {}
    for content in logs:
        for block in read_blocks(content):
            _add_keys(keys, block, now)
            _add_totals(totals, block, now)
    return LoggedUse(keys, totals)


def references(logs: Iterable[bytes]) -> list[bytes]:
    """Return the key digests in the order in which they were used and missed, each once a process."""
    found = [
        (block.written, number, [row.digest for row in block.keys])
        for content in logs
        for number, block in enumerate(read_blocks(content))
    ]
    return [digest for _, _, digests in sorted(found) for digest in digests]


def _add_keys(keys: dict[bytes, KeyUse], block: UseBlock, now: float) -> None:
    for digest, uses, used in block.keys:
        before = keys.get(digest, KeyUse())
        keys[digest] = KeyUse(min(before.uses + uses, _LARGEST), max(before.last_used, min(float(used), now)))


def _add_totals(
    totals: dict[tuple[int, str, str, str], tuple[int, float]], block: UseBlock, now: float
) -> None:
    day = int(min(block.written, now) // SECONDS_PER_DAY)
    for event, events, seconds in block.totals:
        before = totals.get((day, *event), (0, 0.0))
        totals[day, *event] = before[0] + events, before[1] + seconds
