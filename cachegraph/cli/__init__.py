"""The command line: `cachegraph COMMAND`, one command per module.

Exit codes: 0 fine, 1 found a problem (no such key, a damaged index), 2 wrong usage.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that the process's arguments name, and end the process."""
    try:
        from cachegraph.cli.app import app
    except ModuleNotFoundError as error:  # a small installation (docs/library.md)
        if not error.name or error.name.startswith("cachegraph"):
            raise
        sys.exit(f"cachegraph: the commands need {error.name}, which `pip install cachegraph` installs")
    app()
