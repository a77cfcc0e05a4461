"""The command line: `cachegraph COMMAND`, one command per module.

Exit codes: 0 fine, 1 found a problem (no such key, a damaged index), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main() -> None:
    """Run the command that the process's arguments name, and end the process."""
    if sys.stdout is None:  # the shell closed it: cachegraph list >&-
        sys.exit("cachegraph: standard output is closed; redirect it to /dev/null to see nothing")
    try:
        from cachegraph.cli.app import app
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except ModuleNotFoundError as error:  # a small installation (docs/library.md)
        if not error.name or error.name.startswith("cachegraph"):
            raise
        sys.exit(f"cachegraph: the commands need {error.name}, which `pip install cachegraph` installs")
    app()
