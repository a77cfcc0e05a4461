"""Reading the lines that CACHEGRAPH_LOG=FILE writes; their grammar is that of caching/decision_log.py."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cachegraph.report.timeline import Decision, Timeline, longest
from cachegraph.units import SECONDS_OF_UNIT

PAUSE_SECONDS = 600.0
"""Seconds without a decision that end a run: a log is appended to by one run after the other."""
_LARGEST_READ = 16 * 2**20
_LINE = re.compile(r"(\S+) \[([0-9]{1,10})\] (hit|miss|bypass) (\S+)(?: ([0-9a-f]+))?: (.*)")
_HIT_FACTS = re.compile(r"found|loaded in .*")
_REASON = re.compile(
    "never-seen|evicted|key-part-changed: .*|foreign-target|damaged|unreadable|untrusted|mismatch|unverified"
    "|foreign-format|collision|disabled|no-directory|bad-setting"
)
_SECONDS = re.compile(r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?(?:e[+-]?[0-9]{1,2})?) (us|ms|s|min|h)")


def timeline_of_log(path: Path) -> Timeline:
    """Return the last run in the log at `path`, of which the last 16 MiB are read; other lines are skipped.

    Raises OSError.
    """
    with open(path, "rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - _LARGEST_READ, 0))
        text = file.read(_LARGEST_READ).decode("utf-8", "replace")
    found = [decision for line in text.splitlines() for decision in _decisions(line)]
    return longest(str(path), _last_run(found))


def _last_run(decisions: Sequence[Decision]) -> list[Decision]:
    ordered = sorted(decisions, key=lambda decision: decision.at)
    first = len(ordered)
    while first > 0:
        later = ordered[first] if first < len(ordered) else None
        if later and later.at - later.seconds - ordered[first - 1].at > PAUSE_SECONDS:
            break
        first -= 1
    return ordered[first:]


def _decisions(line: str) -> Iterator[Decision]:
    """Yield the decision of `line`, if it is whole."""
    match = _LINE.fullmatch(line)
    if match is None:
        return
    when, process, outcome, level, digits, told = match.groups()
    try:
        at = datetime.fromisoformat(when).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return
    facts = told.split("; ")
    if outcome == "bypass":
        yield Decision(at, 0.0, outcome, level, "", "; ".join(facts[1:]), facts[0], 0.0, int(process))
        return
    spent = _after("loaded in " if outcome == "hit" else "built in ", facts)
    saved = _after("saved ", facts) if outcome == "hit" else 0.0
    what, reason = _words(outcome, facts)
    yield Decision(at, spent, outcome, level, digits or "", what, reason, saved, int(process))


def _words(outcome: str, facts: Sequence[str]) -> tuple[str, str]:
    """Return the summary, or else the detail of a miss, and the reason; a hit has its tier as one."""
    begins = _HIT_FACTS if outcome == "hit" else _REASON
    place = next((n for n, fact in enumerate(facts) if begins.fullmatch(fact)), len(facts))
    summary = "; ".join(facts[:place])
    if outcome == "hit":
        return summary, facts[-1] if facts[-1].startswith("from ") else ""
    return summary or "; ".join(facts[place + 1 : place + 2]), "".join(facts[place : place + 1])


def _after(words: str, facts: Sequence[str]) -> float:
    """Return the seconds in the last fact that begins with `words`, or 0."""
    for fact in reversed(facts):
        match = _SECONDS.fullmatch(fact.removeprefix(words)) if fact.startswith(words) else None
        if match is not None:
            return float(match[1]) * SECONDS_OF_UNIT[match[2]]
    return 0.0
