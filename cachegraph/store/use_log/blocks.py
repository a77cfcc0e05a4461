"""The blocks of a use log. One process appends one block for each time that it flushes its counts.

    log      := block*; a reader skips what is no whole block (a killed writer, a full disk)
    block    := magic(3: "CGU") version(1) length(4) checksum(16) body; the length is that of the body
    checksum := XXH3-128 of the body
    body     := written(8, float) count(4) row* totals
    row      := key digest(16) uses(4) used(4, seconds since 1970, a miss has no uses); the oldest first
    totals   := JSON in UTF-8: [[level, outcome, reason, events, seconds]...] as in activity.py

Numbers are big-endian. Version history: 1 is the first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import isfinite
from struct import Struct
from typing import Any

from cachegraph.fingerprint.primitives import digest
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.activity import Batch, Event

MOST_ROWS = 2000
"""Entries of one block, those used last: a block has at most 48 kB of them."""

_MOST_REASONS = 100
_LARGEST_BODY = 128 * 1024
_MAGIC = b"CGU\1"
_HEADER = Struct(">4sI16s")
_BEGIN = Struct(">dI")
_ROW = Struct(">16sII")
_LARGEST = 2**32 - 1


class UsedKey(NamedTuple):
    """A key that a process used `uses` times, the last time at `used`; or missed, with no uses."""

    digest: bytes
    uses: int
    used: int


class UseBlock(NamedTuple):
    """The keys that one process used and missed until `written` (seconds since 1970), and its totals.

    A total is an event with its count and its seconds; `content` is the whole block as it is in the log.
    """

    written: float
    keys: Sequence[UsedKey]
    totals: Sequence[tuple[Event, int, float]]
    content: bytes


def encode_block(batch: Batch, now: float | None = None) -> bytes:
    """Return the block of `batch`, written at `now` (default: now)."""
    import json

    used = {key: UsedKey(key, 0, _number(missed.when)) for key, missed in batch.misses.items()}
    used |= {key: UsedKey(key, _number(use.uses), _number(use.last_used)) for key, use in batch.uses.items()}
    rows = sorted(used.values(), key=lambda row: row.used)[-MOST_ROWS:]
    totals = [(*event, total.events, total.seconds) for event, total in batch.totals.items()]
    written = time.time() if now is None else now
    packed = b"".join(_ROW.pack(*row) for row in rows)
    text = json.dumps(totals[:_MOST_REASONS]).encode()
    body = _BEGIN.pack(written, len(rows)) + packed + text
    return _HEADER.pack(_MAGIC, len(body), digest(body)) + body


def read_blocks(content: bytes) -> Iterator[UseBlock]:
    """Yield the sound blocks of a log, in their order; the rest is skipped."""
    position = content.find(_MAGIC)
    while position >= 0:
        whole = _whole_at(content, position)
        block = None if whole is None else _decode(whole)
        if block is not None:
            yield block
        position = content.find(_MAGIC, position + (1 if block is None else len(block.content)))


def _whole_at(content: bytes, position: int) -> bytes | None:
    """Return the whole block at `position`, or None if it was cut short or changed."""
    if len(content) < position + _HEADER.size:
        return None
    _, length, checksum = _HEADER.unpack_from(content, position)
    end = position + _HEADER.size + length
    if length > _LARGEST_BODY or end > len(content):
        return None
    sound = digest(content[position + _HEADER.size : end]) == checksum
    return content[position:end] if sound else None


def _decode(whole: bytes) -> UseBlock | None:
    """Return the block, or None if somebody else wrote it."""
    import json

    body = whole[_HEADER.size :]
    try:
        written, count = _BEGIN.unpack_from(body)
        end = _BEGIN.size + count * _ROW.size
        keys = [UsedKey(*row) for row in _ROW.iter_unpack(body[_BEGIN.size : end])]
        totals = [_total(*row) for row in json.loads(body[end:])]
    except Exception:  # anybody may write a log: JSON nested deeply, numbers beyond all bounds
        return None
    return UseBlock(written, keys, totals, whole) if len(keys) == count and isfinite(written) else None


def _total(level: Any, outcome: Any, reason: Any, events: Any, seconds: Any) -> tuple[Event, int, float]:
    if not isfinite(seconds):
        raise ValueError(f"reading a total: {seconds} seconds")
    return (str(level), str(outcome), str(reason)), int(events), float(seconds)


def _number(value: float) -> int:
    return min(max(int(value), 0), _LARGEST)
