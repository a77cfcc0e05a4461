"""The exit codes of the commands: 0 fine, 1 found a problem (no such key, a damaged index), 2 wrong usage,
130 interrupted, as shells have it."""

from __future__ import annotations

INTERRUPTED = 130

EXIT_CODES = f"Exit codes: 0 fine, 1 found a problem, 2 wrong usage, {INTERRUPTED} interrupted."
