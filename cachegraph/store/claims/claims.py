"""A claim: the right to be the one who builds what a key describes. Nothing relies on it to be right.

Where a claim cannot be told or taken (a directory that is full, missing, read-only), there is none, and everybody builds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple, Protocol

MOST_SAID = 4096
"""Bytes that a holder says about itself; a file that has more was not written by one."""
_NAME_LENGTH = 64
_LATEST = 253_402_300_799.0  # the last second of the year 9999


class Holder(NamedTuple):
    """Who has a claim: host, process, and since when (seconds since 1970). All empty where that is not known."""

    host: str = ""
    pid: int = 0
    since: float = 0.0

    @classmethod
    def from_document(cls, said: Mapping[str, Any]) -> Holder:
        """Return who wrote `said` (host, pid, since); raises KeyError, TypeError and ValueError on anything else."""
        host = "".join(c for c in str(said["host"])[:_NAME_LENGTH] if c.isprintable())
        pid, since = float(said["pid"]), float(said["since"])
        if not isfinite(pid) or not isfinite(since):
            raise ValueError(f"process {pid}, since {since}")
        return cls(host, int(pid), min(max(since, 0.0), _LATEST))

    def __str__(self) -> str:
        if not self.pid:
            return "a process that has not said which it is"
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.since))
        return f"process {self.pid} on {self.host or 'this machine'}, since {when} UTC"


class Claim(Protocol):
    """One claim on one key, at one place. Asked again by whoever did not get it, which is how the dead are noticed."""

    def acquire(self) -> Holder | None:
        """Take the claim, without waiting: None if it is taken now, else who has it.

        Raises OSError where there is no claim to be had, and its kind Unkept where waiting for one is of no use.
        """

    def mark(self, unkept: bool) -> None:
        """Say whether what was built could not be kept, to others that would wait for it; never raises OSError."""

    def release(self) -> None:
        """Give the claim back, if it was acquired by this process; never raises OSError."""
